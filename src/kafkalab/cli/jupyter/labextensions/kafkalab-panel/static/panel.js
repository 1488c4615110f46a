/* A JupyterLab extension: beside each notebook of the course stands a panel with the map of its clusters.
 *
 * The panel shows one widget, which `kafkalab.widgets.panel` makes in the notebook's own kernel and fills with maps.
 * This file is what the browser loads: a module-federation container written by hand, so it needs no build.
 * `init` receives the modules that JupyterLab shares, `get` returns ours.
 */
(() => {
  const WIDGET_VIEW = 'application/vnd.jupyter.widget-view+json';
  const MODEL_ID = "__import__('kafkalab.widgets.panel', fromlist=['model_id']).model_id()";
  const NOT_YET = 'No cluster yet.';
  const SHARE = 0.42; // of the width of notebook and panel together
  const LEAST = 360; // pixels: the map is drawn to be read at this width

  const STYLE = `
    .kafkalab-panel { overflow-y: auto; min-width: ${LEAST}px; padding: 8px 10px; background: var(--jp-layout-color1); }
    .kafkalab-panel:has(.kafkalab-maps > *) > .kafkalab-not-yet { display: none; }
    .lm-DockPanel-tabBar .lm-TabBar-tab.kafkalab-panel-tab { flex-basis: 300px; max-width: none; }
    .kafkalab-not-yet { padding: 24px 8px; text-align: center; color: var(--jp-ui-font-color2); font-size: 14px; }`;

  function definePanel({ Panel, Widget }, { MimeModel }) {
    return class ClusterPanel extends Panel {
      constructor(notebook) {
        super();
        this.notebook = notebook;
        this.kernel = null; // the one whose widget is shown
        this.id = `kafkalab-panel-${notebook.id}`;
        this.addClass('kafkalab-panel');
        // JupyterLab must not take note of a click in here: menus and new tabs are for the notebook still.
        this.node.addEventListener('focus', event => event.stopImmediatePropagation(), true);
        this.title.closable = true;
        this.title.className = 'kafkalab-panel-tab';
        const notYet = document.createElement('div');
        notYet.className = 'kafkalab-not-yet';
        const [first] = codeCells(notebook);
        notYet.textContent = `${NOT_YET} Run the ${/\bCluster\(/.test(first) ? 'first cell' : 'cell that starts it'}.`;
        this.addWidget(new Widget({ node: notYet }));

        const { context, sessionContext } = notebook;
        context.pathChanged.connect(this.rename, this);
        sessionContext.kernelChanged.connect(this.follow, this);
        sessionContext.statusChanged.connect(this.follow, this);
        // Afterwards: JupyterLab takes the notebook out of the window only then.
        notebook.disposed.connect(() => void Promise.resolve().then(() => this.dispose()));
        this.rename();
        void this.follow();
      }

      dispose() {
        if (!this.isDisposed) {
          const { context, sessionContext } = this.notebook;
          context.pathChanged.disconnect(this.rename, this);
          sessionContext.kernelChanged.disconnect(this.follow, this);
          sessionContext.statusChanged.disconnect(this.follow, this);
          super.dispose();
        }
      }

      rename() {
        const name = this.notebook.context.path.split('/').pop().replace(/\.ipynb$/, '');
        this.title.label = `Cluster · ${name}`;
        this.title.caption = `The cluster of ${name}`;
      }

      /* Show the widget of the kernel that runs now. A kernel that was restarted has lost it. */
      async follow() {
        const kernel = this.notebook.sessionContext.session?.kernel ?? null;
        if (kernel !== this.kernel || ['restarting', 'autorestarting', 'terminating', 'dead'].includes(kernel?.status)) {
          this.kernel = null;
          this.widgets.slice(1).forEach(view => view.dispose());
        }
        if (!this.kernel && kernel?.status === 'idle') {
          this.kernel = kernel;
          const modelId = await ask(kernel);
          if (modelId && this.kernel === kernel && !this.isDisposed) {
            const view = this.notebook.content.rendermime.createRenderer(WIDGET_VIEW);
            const data = { [WIDGET_VIEW]: { model_id: modelId, version_major: 2, version_minor: 0 } };
            this.addWidget(view);
            await view.renderModel(new MimeModel({ data, trusted: true }));
          }
        }
      }
    };
  }

  const codeCells = notebook =>
    [...notebook.content.model.cells].filter(cell => cell.type === 'code').map(cell => cell.sharedModel.getSource());

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

  /* Give the panel its share of the width: JupyterLab halves it. */
  function resize(panel) {
    const dock = panel.parent;
    const right = panel.node.getBoundingClientRect();
    for (const handle of dock.layout.handles()) {
      const bounds = handle.getBoundingClientRect();
      if (handle.dataset.orientation === 'horizontal' && Math.abs(bounds.right - right.left) < 2) {
        const wanted = Math.max(LEAST, 2 * right.width * SHARE);
        dock.layout.moveHandle(handle, bounds.left + right.width - wanted - dock.node.getBoundingClientRect().left, 0);
      }
    }
  }

  function activate(app, tracker, widgets, rendermime, ui) {
    if (app.shell.mode === undefined) {
      return; // Notebook 7 has room for one widget: maps and cards stay in their cells
    }
    const sheet = document.createElement('style');
    sheet.textContent = STYLE;
    document.head.append(sheet);
    const ClusterPanel = definePanel(widgets, rendermime);
    const panels = new Map(); // notebook → its panel

    const open = notebook => {
      const panel = new ClusterPanel(notebook);
      const beside = [...panels.values()].find(other => other.isAttached);
      panels.set(notebook, panel);
      panel.node.addEventListener('click', event => follow(event, notebook));
      panel.disposed.connect(() => panels.delete(notebook));
      const place = beside ? { ref: beside.id, mode: 'tab-after' } : { ref: notebook.id, mode: 'split-right' };
      app.shell.add(panel, 'main', { ...place, activate: false });
      if (!beside) {
        requestAnimationFrame(() => resize(panel));
      }
      return panel;
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
    const show = notebook => app.shell.activateById((panels.get(notebook) ?? open(notebook)).id);

    const usesKafkalab = notebook => codeCells(notebook).some(source => /\bkafkalab\b/.test(source));

    const added = async notebook => {
      await Promise.all([app.restored, notebook.context.ready, notebook.revealed]);
      if (!notebook.isDisposed && usesKafkalab(notebook)) {
        const button = new ui.ToolbarButton({
          label: 'Cluster',
          tooltip: 'Show the cluster beside the notebook',
          onClick: () => show(notebook),
        });
        notebook.toolbar.insertAfter('cellType', 'kafkalab-cluster', button);
        open(notebook);
        if (tracker.currentWidget === notebook) {
          show(notebook);
        }
      }
    };

    tracker.forEach(added);
    tracker.widgetAdded.connect((_, notebook) => added(notebook));
    tracker.currentChanged.connect((_, notebook) => {
      if (panels.has(notebook)) {
        show(notebook);
      }
    });
  }

  let scope;

  async function shared(name) {
    const versions = Object.values(scope[name]);
    const chosen = versions.find(version => version.loaded) ?? versions[0];
    return (await chosen.get())();
  }

  async function extension() {
    const names = ['notebook', 'rendermime', 'ui-components'].map(name => `@jupyterlab/${name}`);
    const [notebook, rendermime, ui, widgets] = await Promise.all([...names, '@lumino/widgets'].map(shared));
    return {
      id: 'kafkalab-panel:plugin',
      description: 'Shows the cluster of a notebook beside it.',
      autoStart: true,
      requires: [notebook.INotebookTracker],
      activate: (app, tracker) => activate(app, tracker, widgets, rendermime, ui),
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
