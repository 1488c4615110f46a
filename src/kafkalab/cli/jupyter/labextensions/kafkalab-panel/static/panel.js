/* A JupyterLab extension: beside each notebook of the course stands a panel with the map of its clusters.
 *
 * The panel shows one widget, which `kafkalab.widgets.panel` makes in the notebook's own kernel and fills with maps, and with
 * pages about what runs beside the clusters. Tabs bring them to the front.
 * This file is what the browser loads: a module-federation container written by hand, so it needs no build.
 * `init` receives the modules that JupyterLab shares, `get` returns ours.
 */
(() => {
  const WIDGET_VIEW = 'application/vnd.jupyter.widget-view+json';
  const MODEL_ID = "__import__('kafkalab.widgets.panel', fromlist=['model_id']).model_id()";
  const PLUGIN = 'kafkalab-panel:plugin';
  const COMM = 'kafkalab-panel'; // over which the kernel hears what somebody sees
  const TOUCHES = ['keydown', 'pointerdown', 'pointermove', 'wheel'];
  const MAP = 'Map'; // the title of the maps' tab
  const SOLUTION = /(^|\/)solutions\/\d\d_[^/]+\/[^/]+\.ipynb$/;
  const SOLUTION_TAB = 'kafkalab-solution-tab';

  // Milliseconds.
  const HEARTBEAT = 60_000; // between two words that somebody is there still
  const ABSENT = 3_600_000; // without a key or a pointer, after which nobody is

  // Pixels.
  const PANEL = 310; // the least width of the panel: its map is drawn to be read at this width
  const NOTEBOOK = 713; // the least width of a notebook beside it: 603 for text and 76 columns of code, the rest for prompts and margins
  const BELOW = 220; // the height of a panel below the notebook
  const STRIP = 44; // of one whose cluster has stopped
  const SHARE = 0.42; // the panel's part of the width, where there's enough for both

  const STYLE = `
    .kafkalab-panel { overflow-y: auto; padding: 8px 10px; background: var(--jp-layout-color1); }
    .kafkalab-panel:has(.kafkalab-maps > *) > .kafkalab-empty { display: none; }
    .lm-DockPanel-tabBar .lm-TabBar-tab.kafkalab-panel-tab { flex-basis: 300px; max-width: none; }
    .kafkalab-empty, .kafkalab-not-yet { padding: 16px 8px; text-align: center; color: var(--jp-ui-font-color2); font-size: 14px; }
    .kafkalab-below .kafkalab-map { display: grid; grid-template-columns: minmax(0, 1fr) 320px; column-gap: 12px; }
    .kafkalab-below .kafkalab-map > * { grid-column: 1; }
    .kafkalab-below .kafkalab-map > .kafkalab-events { grid-column: 2; grid-row: 1 / span 20; align-self: start; top: 0;
      max-height: ${BELOW - 30}px; }
    .kafkalab-panel [role=tabpanel][hidden] { display: none; }
    .kafkalab-panel [role=tablist] { display: flex; flex-wrap: wrap; margin-bottom: 4px;
      border-bottom: 1px solid var(--jp-border-color1); }
    .kafkalab-panel [role=tablist]:not(:has(:nth-child(2))) { display: none; }
    .kafkalab-panel [role=tab] { font: 13px var(--jp-ui-font-family); padding: 4px 9px 2px; cursor: pointer; border: none;
      border-bottom: 3px solid transparent; background: none; color: var(--jp-ui-font-color1); }
    .kafkalab-panel [role=tab]:hover { background: var(--jp-layout-color2); }
    .kafkalab-panel [role=tab][aria-selected=true] { font-weight: 600; border-color: var(--jp-brand-color1); }
    .kafkalab-panel :is([role=tab], [role=tabpanel]):focus-visible { outline: 2px solid var(--jp-brand-color1);
      outline-offset: -2px; }
    .kafkalab-paused { display: none; padding: 4px 8px; margin-bottom: 4px; color: var(--jp-ui-font-color1);
      background: var(--jp-warn-color3); }
    .kafkalab-unattended > .kafkalab-paused { display: block; }
    .kafkalab-strip { padding: 4px 10px; }
    .kafkalab-strip > .kafkalab-again { display: flex; }
    .kafkalab-strip > :not(.kafkalab-again) { display: none; }
    .kafkalab-said { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    .kafkalab-again { display: none; align-items: center; gap: 12px; font-size: 14px; color: var(--jp-ui-font-color1); }
    .kafkalab-again button { font: inherit; padding: 2px 12px; cursor: pointer; color: var(--jp-ui-font-color1);
      background: var(--jp-layout-color2); border: 1px solid var(--jp-border-color1); border-radius: 4px; }
    .kafkalab-notebook .jp-InputArea-editor .cm-line { padding: 0 1px 0 4px; }
    .kafkalab-notebook .jp-RenderedText pre { white-space: pre; overflow-wrap: normal; word-break: normal; }
    .kafkalab-notebook .jp-OutputArea-output { overflow-x: auto; }
    .kafkalab-notebook .jp-RenderedSVG img { max-width: none; }
    .lm-DockPanel-tabBar .lm-TabBar-tab.${SOLUTION_TAB} { min-width: 280px; max-width: none; }
    .${SOLUTION_TAB} .lm-TabBar-tabLabel::before, .kafkalab-solution .jp-Cell:first-child h1::before { content: 'Solution';
      margin-right: 8px; padding: 1px 6px; border-radius: 4px; color: #fff; background: #8250df; font-weight: 600; }
    .kafkalab-solution > .jp-NotebookPanel-toolbar { border-top: 3px solid #8250df; }`;

  const codeCells = notebook => [...notebook.content.model.cells].filter(cell => cell.type === 'code');
  const source = cell => cell.sharedModel.getSource();
  const startsCluster = cell => /\bCluster\(/.test(source(cell));
  const usesKafkalab = notebook => codeCells(notebook).some(cell => /\bkafkalab\b/.test(source(cell)));
  const nameOf = notebook => notebook.context.path.split('/').pop().replace(/\.ipynb$/, '');

  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    made.className = className;
    made.append(...children);
    return made;
  }

  function definePanel({ Panel, Widget }, { MimeModel }, { Signal }) {
    return class ClusterPanel extends Panel {
      constructor(notebook, startAgain) {
        super();
        this.notebook = notebook;
        this.kernel = null; // the one whose widget is shown
        this.session = null; // its session's id
        this.comm = null; // with that kernel
        this.front = MAP; // the title of the page in front
        this.inView = false;
        this.told = { looks: false }; // what the kernel last heard
        this.closedByHand = false;
        this.state = '';
        this.changed = new Signal(this); // its state did
        this.id = `kafkalab-panel-${notebook.id}`;
        this.addClass('kafkalab-panel');
        // JupyterLab must not take note of a click in here: menus and new tabs are for the notebook still.
        this.node.addEventListener('focus', event => event.stopImmediatePropagation(), true);
        this.title.closable = true;
        this.title.className = 'kafkalab-panel-tab';
        this.empty = element('div', 'kafkalab-empty');
        this.addWidget(new Widget({ node: this.empty }));
        const again = element('button', '', 'Start again');
        again.addEventListener('click', startAgain);
        this.addWidget(new Widget({ node: element('div', 'kafkalab-again', 'The cluster has stopped.', again) }));
        this.addWidget(new Widget({ node: element('div', 'kafkalab-paused', 'Paused: nobody was here for an hour. Click to go on.') }));
        this.said = element('div', 'kafkalab-said');
        this.said.setAttribute('role', 'status');
        this.addWidget(new Widget({ node: this.said }));
        this.logs = new WeakMap(); // log → its lines when they were last said
        this.own = this.widgets.length;
        this.observer = new MutationObserver(() => this.look());
        this.observer.observe(this.node, { childList: true, subtree: true });
        this.sight = new IntersectionObserver(changes => {
          this.inView = changes.at(-1).isIntersecting;
          this.tell();
        });
        this.sight.observe(this.node);
        this.tell = this.tell.bind(this);
        document.addEventListener('visibilitychange', this.tell);
        this.touched = Date.now(); // when somebody last used the keyboard or the pointer
        this.touch = this.touch.bind(this);
        TOUCHES.forEach(kind => document.addEventListener(kind, this.touch, { capture: true, passive: true }));
        this.heart = setInterval(() => this.beat(), HEARTBEAT);

        const { context, sessionContext } = notebook;
        context.pathChanged.connect(this.rename, this);
        sessionContext.kernelChanged.connect(this.follow, this);
        sessionContext.statusChanged.connect(this.follow, this);
        this.rename();
        void this.follow();
      }

      dispose() {
        if (!this.isDisposed) {
          const { context, sessionContext } = this.notebook;
          context.pathChanged.disconnect(this.rename, this);
          sessionContext.kernelChanged.disconnect(this.follow, this);
          sessionContext.statusChanged.disconnect(this.follow, this);
          this.observer.disconnect();
          this.sight.disconnect();
          document.removeEventListener('visibilitychange', this.tell);
          TOUCHES.forEach(kind => document.removeEventListener(kind, this.touch, { capture: true }));
          clearInterval(this.heart);
          this.inView = false;
          this.tell();
          super.dispose();
        }
      }

      onCloseRequest(message) {
        this.closedByHand = true;
        super.onCloseRequest(message);
      }

      rename() {
        const name = nameOf(this.notebook);
        this.title.label = `Cluster · ${name}`;
        this.title.caption = `The cluster of ${name}`;
      }

      get seen() {
        const looks = !document.hidden && this.isAttended;
        return { page: looks && this.inView ? this.front : '', looks };
      }

      get isAttended() {
        return Date.now() - this.touched < ABSENT;
      }

      touch() {
        const wasAttended = this.isAttended;
        this.touched = Date.now();
        if (!wasAttended) {
          this.beat();
        }
      }

      /* The kernel stops drawing when it hasn't heard for a while that somebody looks: a forgotten server must be able to end. */
      beat() {
        this.toggleClass('kafkalab-unattended', !this.isAttended);
        if (this.seen.looks || this.told.looks) {
          this.tell();
        }
      }

      /* Tell the kernel which page somebody sees: it asks for no other. */
      tell() {
        if (this.comm && !this.comm.isDisposed) {
          this.told = this.seen;
          void this.comm.send(this.told);
        }
      }

      /* A tab for each page, as in WAI-ARIA's pattern: arrow keys move through them and show the page that they reach. */
      drawTabs(list, pages) {
        const titles = pages.map((page, place) => place ? page.querySelector('.kafkalab-title')?.textContent ?? '' : MAP);
        if (titles.includes('')) {
          return; // ipywidgets makes that page anew
        }
        const hadFocus = list.contains(document.activeElement);
        if (titles.join() !== [...list.children].map(tab => tab.textContent).join()) {
          list.replaceChildren(...titles.map(title => this.makeTab(title)));
          list.onkeydown = event => this.moveThroughTabs(event, titles);
          if (!titles.includes(this.front)) {
            this.front = MAP;
            this.tell();
          }
        }
        pages.forEach((page, place) => {
          const tab = list.children[place];
          const isFront = titles[place] === this.front;
          tab.setAttribute('aria-selected', isFront);
          tab.tabIndex = isFront ? 0 : -1;
          page.setAttribute('role', 'tabpanel');
          page.setAttribute('aria-labelledby', tab.id);
          page.hidden = !isFront;
          if (place) {
            page.tabIndex = 0; // nothing else in it can have the focus, unlike in the map
          }
          if (isFront && hadFocus) {
            tab.focus();
          }
        });
      }

      makeTab(title) {
        const tab = element('button', '', title);
        tab.setAttribute('role', 'tab');
        tab.id = `${this.id}-${title}`;
        tab.addEventListener('click', () => this.turnTo(title));
        return tab;
      }

      moveThroughTabs(event, titles) {
        const place = titles.indexOf(this.front);
        const last = titles.length - 1;
        const [before, after] = [place ? place - 1 : last, place < last ? place + 1 : 0];
        const next = { ArrowLeft: before, ArrowRight: after, Home: 0, End: last }[event.key];
        if (next !== undefined) {
          event.preventDefault();
          this.turnTo(titles[next]);
        }
      }

      /* Bring a page to the front. Not `show`: Lumino calls that of each widget. */
      turnTo(title) {
        this.front = title;
        this.tell();
        this.look();
      }

      /* Let screen readers say new events. They can't follow the log itself: with each event the browser replaces all of it. */
      say(log) {
        const events = [...log.querySelectorAll('.event')];
        const lines = events.map(event => event.textContent);
        const known = this.logs.get(log);
        if (known?.join() === lines.join()) {
          return;
        }
        this.logs.set(log, lines);
        const old = [...(known ?? lines)]; // what stands in a new log is no news
        const fresh = events.filter(event => {
          const place = old.indexOf(event.textContent);
          return place < 0 || !old.splice(place, 1);
        });
        if (fresh.length) {
          const words = fresh.map(event => event.lastChild.textContent.replace(/^→ /, '')); // without the time
          this.said.textContent = words.join('. ');
        }
      }

      /* What there is to show: "live" with a cluster, "card" with a lab's card or a seat in a class only, "busy" with
       * what a cell does, "stopped" after a cluster, or "". */
      look() {
        this.node.querySelectorAll('.kafkalab-events').forEach(log => this.say(log));
        // By their places, because a widget gets its classes only when it's shown.
        const [seat, underway, card, tabs] = this.node.querySelector('.jupyter-widgets')?.children ?? [];
        const [bar, body, ...others] = tabs?.children ?? [];
        const list = bar?.querySelector('[role=tablist]');
        if (list && body) {
          this.drawTabs(list, [body, ...others]);
        }
        const busy = underway?.querySelector('.kafkalab-underway');
        const maps = [...(body?.children ?? [])];
        const live = maps.some(map => !map.querySelector('.kafkalab-not-yet'));
        const state = live ? 'live' : card?.children.length || seat?.children.length ? 'card' : busy ? 'busy' : maps.length ? 'stopped' : '';
        if (state !== this.state) {
          this.state = state;
          this.changed.emit();
        }
      }

      /* Show the widget of the kernel that runs now. A kernel that was restarted has lost it. */
      async follow() {
        if (this.notebook.isDisposed) {
          return;
        }
        const session = this.notebook.sessionContext.session;
        const kernel = session?.kernel ?? null;
        const [first] = codeCells(this.notebook);
        const where = first && startsCluster(first) ? 'first cell' : 'cell that starts it';
        const waits = kernel?.status === 'busy' ? 'A cell is running. Its cluster will be shown here.' : `Run the ${where}.`;
        this.empty.textContent = `No cluster yet. ${waits}`;
        if (kernel !== this.kernel || ['restarting', 'autorestarting', 'terminating', 'dead'].includes(kernel?.status)) {
          this.kernel = this.comm = null;
          this.widgets.slice(this.own).forEach(view => view.dispose());
        }
        if (!this.kernel && kernel?.status === 'idle') {
          this.kernel = kernel;
          this.session = session.id;
          const modelId = await ask(kernel);
          if (modelId && this.kernel === kernel && !this.isDisposed) {
            const view = this.notebook.content.rendermime.createRenderer(WIDGET_VIEW);
            const data = { [WIDGET_VIEW]: { model_id: modelId, version_major: 2, version_minor: 0 } };
            this.addWidget(view);
            await view.renderModel(new MimeModel({ data, trusted: true }));
            this.comm = kernel.createComm(COMM);
            this.told = this.seen;
            this.comm.open(this.told);
          }
        }
      }
    };
  }

  /* The id of the widget's model, which the kernel makes when it is asked for the first time; null without kafkalab. */
  async function ask(kernel) {
    const request = { code: '', silent: true, store_history: false, user_expressions: { id: MODEL_ID } };
    try {
      for (;;) {
        const { content } = await kernel.requestExecute(request).done;
        if (content.status !== 'aborted') { // as all requests are that wait behind a cell that fails
          return content.user_expressions?.id?.data?.['text/plain'].replaceAll("'", '') ?? null;
        }
      }
    } catch {
      return null; // the kernel went away meanwhile
    }
  }

  /* Where panels stand: the one of the notebook in front, beside it or below it. */
  function defineDesk(shell) {
    const at = new WeakMap(); // panel → the place it has

    const bounds = widget => widget.node.getBoundingClientRect();
    const tabsOf = (dock, widget) => [...dock.tabBars()].find(bar => bar.titles.includes(widget.title)).node;

    /* Move the border between the notebook and its panel. */
    function size(panel, place) {
      const dock = panel.parent;
      if (!dock?.layout?.handles) {
        return; // it was closed meanwhile
      }
      const vertical = place !== 'right';
      const tabs = tabsOf(dock, panel).getBoundingClientRect();
      const edge = vertical ? tabs.top : tabs.left;
      for (const handle of dock.layout.handles()) {
        const { left, right, top, bottom } = handle.getBoundingClientRect();
        const touches = vertical ? Math.abs(bottom - edge) < 2 && left < tabs.right : Math.abs(right - edge) < 2;
        if (touches && handle.dataset.orientation === (vertical ? 'vertical' : 'horizontal')) {
          const origin = bounds(dock);
          if (vertical) {
            const height = tabs.height + (place === 'strip' ? STRIP : BELOW);
            dock.layout.moveHandle(handle, 0, top + (bounds(panel).bottom - tabs.top) - height - origin.top);
          } else {
            const both = tabs.right - bounds(panel.notebook).left;
            const width = Math.max(PANEL, Math.min(both * SHARE, both - NOTEBOOK));
            dock.layout.moveHandle(handle, tabs.right - width - (right - left) - origin.left, 0);
          }
        }
      }
    }

    function placeOf(panel, wanted) {
      if (panel.closedByHand || !(wanted || panel.state)) {
        return null;
      }
      if (panel.state === 'stopped') {
        return 'strip';
      }
      const notebook = bounds(panel.notebook);
      const room = at.get(panel) === 'right' && panel.isAttached ? bounds(panel).right - notebook.left : notebook.width;
      return room >= NOTEBOOK + PANEL ? 'right' : 'below';
    }

    /* Give the front notebook's panel its place, and take the others away. */
    return function arrange(panels, front, wanted = false) {
      const panel = panels.get(front);
      const place = panel ? placeOf(panel, wanted || (panel.isAttached && !panel.closedByHand)) : null;
      if (place && (at.get(panel) !== place || !panel.isAttached)) {
        at.set(panel, place);
        panel.toggleClass('kafkalab-strip', place === 'strip');
        panel.toggleClass('kafkalab-below', place === 'below');
        const mode = place === 'right' ? 'split-right' : 'split-bottom';
        shell.add(panel, 'main', { ref: front.id, mode, activate: false });
      }
      for (const other of panels.values()) {
        if (other.isAttached && (other !== panel || !place)) {
          other.parent = null;
        }
      }
      if (place) {
        requestAnimationFrame(() => size(panel, place));
      }
    };
  }

  /* A solution says that it is one: in its tab, before its heading and by its colour. Not in the tab's label, because
   * JupyterLab renames a file whose label changes. */
  function markSolution(notebook) {
    const isSolution = SOLUTION.test(notebook.context.path);
    const others = notebook.title.className.split(' ').filter(name => name !== SOLUTION_TAB);
    notebook.title.className = [...others, ...(isSolution ? [SOLUTION_TAB] : [])].join(' ');
    notebook.toggleClass('kafkalab-solution', isSolution);
  }

  /* Opening a notebook changes nothing: JupyterLab writes the kernel's name and version into it, as if somebody had. */
  function keepClean(notebook) {
    const { model } = notebook.context;
    const cells = () => JSON.stringify(model.toJSON().cells);
    const before = cells();
    const look = (_, change) => {
      if (['kernelspec', 'language_info'].includes(change.key)) {
        void Promise.resolve().then(() => {
          if (!notebook.isDisposed && model.dirty && cells() === before) {
            model.dirty = false;
          }
        });
      }
    };
    model.metadataChanged.connect(look);
    look(null, { key: 'kernelspec' }); // it may have happened already
  }

  function activate(app, tracker, settingRegistry, modules) {
    if (app.shell.mode === undefined) {
      return; // Notebook 7 has room for one widget: maps and cards stay in their cells
    }
    const { widgets, rendermime, ui, apputils, signaling } = modules;
    document.head.append(element('style', '', STYLE));
    const ClusterPanel = definePanel(widgets, rendermime, signaling);
    const panels = new Map(); // notebook → its panel
    const arrangePanels = defineDesk(app.shell);
    let settings = null;

    const arrange = wanted => {
      if (tracker.currentWidget?.isVisible) {
        arrangePanels(panels, tracker.currentWidget, wanted);
      }
    };

    const open = notebook => {
      const panel = new ClusterPanel(notebook, () => startAgain(notebook));
      panels.set(notebook, panel);
      panel.changed.connect(() => arrange());
      panel.node.addEventListener('click', event => follow(event, notebook));
      // Afterwards: JupyterLab takes the notebook out of the window only then.
      notebook.disposed.connect(() => void Promise.resolve().then(() => {
        panels.delete(notebook);
        if (panel.state === 'live') {
          void endOrKeep(nameOf(notebook), panel.session);
        }
        panel.dispose();
      }));
    };

    const follow = (event, notebook) => {
      const link = event.target.closest?.('a[data-kafkalab-open]');
      if (link) {
        event.preventDefault();
        const base = new URL(notebook.context.path, 'file:///');
        const path = decodeURIComponent(new URL(link.dataset.kafkalabOpen, base).pathname.slice(1));
        void app.commands.execute('docmanager:open', { path });
      }
    };

    const startAgain = notebook => {
      const cells = [...notebook.content.model.cells];
      app.shell.activateById(notebook.id);
      notebook.content.activeCellIndex = Math.max(0, cells.findIndex(cell => cell.type === 'code' && startsCluster(cell)));
      void app.commands.execute('notebook:run-cell');
    };

    /* A closed notebook's kernel goes on, and so do its brokers. */
    const endOrKeep = async (name, session) => {
      let choice = settings?.get('onClose').composite ?? 'ask';
      if (choice === 'ask') {
        const answer = await apputils.showDialog({
          title: `End the cluster of ${name}?`,
          body: 'The notebook is closed, but its brokers are still running. They end with its kernel.',
          buttons: [apputils.Dialog.cancelButton({ label: 'Keep it running' }), apputils.Dialog.okButton({ label: 'End it' })],
          checkbox: { label: "Don't ask again. The settings of “Kafka course” change that.", checked: false },
        });
        choice = answer.button.accept ? 'end' : 'keep';
        if (answer.isChecked) {
          void settings?.set('onClose', choice);
        }
      }
      if (choice === 'end') {
        await app.serviceManager.sessions.shutdown(session);
      }
    };

    const button = (notebook, name, label, tooltip, onClick) =>
      notebook.toolbar.insertAfter('cellType', name, new ui.ToolbarButton({ label, tooltip, onClick }));

    const added = async notebook => {
      await Promise.all([app.restored, notebook.context.ready, notebook.revealed]);
      if (notebook.isDisposed || !usesKafkalab(notebook)) {
        return;
      }
      notebook.addClass('kafkalab-notebook');
      markSolution(notebook);
      notebook.context.pathChanged.connect(() => markSolution(notebook));
      keepClean(notebook);
      open(notebook);
      button(notebook, 'kafkalab-projector', 'Large', 'Large type, for a projector', () =>
        void app.commands.execute('kafkalab:projector').then(() => arrange()));
      button(notebook, 'kafkalab-cluster', 'Cluster', 'Show the cluster beside the notebook', () => {
        panels.get(notebook).closedByHand = false;
        arrange(true);
      });
      arrange();
    };

    tracker.forEach(added);
    tracker.widgetAdded.connect((_, notebook) => added(notebook));
    tracker.currentChanged.connect(() => arrange());
    void app.restored.then(() => {
      const dock = document.getElementById('jp-main-dock-panel');
      new ResizeObserver(() => arrange()).observe(dock);
    });
    // The text first. Afterwards, because JupyterLab shows its file list in a layout that nobody has arranged yet.
    void Promise.all([app.shell.restored, app.restored]).then(([layout]) => {
      if (layout?.fresh) {
        setTimeout(() => app.shell.collapseLeft());
      }
    });
    void settingRegistry.load(PLUGIN).then(loaded => {
      settings = loaded;
    });
  }

  let scope;

  async function shared(name) {
    const versions = Object.values(scope[name]);
    const chosen = versions.find(version => version.loaded) ?? versions[0];
    return (await chosen.get())();
  }

  async function extension() {
    const names = ['notebook', 'rendermime', 'ui-components', 'apputils', 'settingregistry'].map(name => `@jupyterlab/${name}`);
    const [notebook, rendermime, ui, apputils, registry, widgets, signaling] = await Promise.all(
      [...names, '@lumino/widgets', '@lumino/signaling'].map(shared),
    );
    return {
      id: PLUGIN,
      description: 'Shows the cluster of a notebook beside it.',
      autoStart: true,
      requires: [notebook.INotebookTracker, registry.ISettingRegistry],
      activate: (app, tracker, settings) =>
        activate(app, tracker, settings, { widgets, rendermime, ui, apputils, signaling }),
    };
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB['kafkalab-panel'] = {
    init: shares => {
      scope = shares;
    },
    get: async () => {
      const plugin = await extension();
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
