/* A JupyterLab extension: the course's home page, and links within a notebook that find their heading.
 *
 * What the page shows comes from `kafkalab.cli.home_server`. It opens when the address names no document, and instead of
 * JupyterLab's launcher when the last tab was closed. Its links open notebooks; the browser's own keys work on all of it.
 * This file is what the browser loads: a module-federation container written by hand, so it needs no build.
 * `init` receives the modules that JupyterLab shares, `get` returns ours.
 */
(() => {
  const COMMAND = 'kafkalab:home';
  const ID = 'kafkalab-home';
  const OPENS = 30000; // milliseconds: until a notebook's cells are there
  const SETTLES = 3000; // milliseconds: until they have their heights
  const NEAR = 60; // pixels

  const STYLE = `
    .kafkalab-home { overflow-y: auto; padding: 24px clamp(16px, 4%, 48px); color: var(--jp-content-font-color1);
      background: var(--jp-layout-color0); font-size: 14px; line-height: 1.45; }
    .kafkalab-home:focus { outline: none; }
    .kafkalab-home > .page { max-width: 1240px; margin: 0 auto; }
    .kafkalab-home h1 { margin: 0; font-size: 26px; font-weight: 600; }
    .kafkalab-home .sum { margin: 4px 0 0; color: var(--jp-content-font-color2); }
    .kafkalab-home header { display: flex; flex-wrap: wrap; gap: 16px 32px; align-items: center;
      justify-content: space-between; margin-bottom: 24px; }
    .kafkalab-home .go-on { padding: 10px 18px; border-radius: 6px; color: #fff; background: #1763c7; font-weight: 600;
      text-decoration: none; max-width: 560px; }
    .kafkalab-home .go-on span { display: block; font-weight: 400; }
    .kafkalab-home .go-on:hover { background: #12529f; }
    .kafkalab-home .cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(270px, 1fr)); gap: 16px;
      margin: 0; padding: 0; list-style: none; align-items: start; }
    .kafkalab-home .card { box-sizing: border-box; padding: 14px 16px; border: 1px solid var(--jp-border-color1); border-radius: 8px; background: var(--jp-layout-color1); }
    .kafkalab-home .card.current { border-color: var(--jp-brand-color1); }
    .kafkalab-home h2 { margin: 0; font-size: 16px; font-weight: 600; line-height: 1.3; min-height: 42px; }
    .kafkalab-home :is(.card, .own, .notice, nav) a { color: var(--jp-content-link-color); text-decoration: none; }
    .kafkalab-home :is(.card, .own, .notice, nav) a:hover { text-decoration: underline; }
    .kafkalab-home nav { display: flex; gap: 16px; margin-top: 4px; }
    .kafkalab-home a:focus-visible, .kafkalab-home summary:focus-visible {
      outline: 3px solid var(--jp-brand-color1); outline-offset: 2px; border-radius: 3px; }
    .kafkalab-home p { margin: 2px 0; }
    .kafkalab-home .quiet { color: var(--jp-content-font-color2); }
    .kafkalab-home .bar { height: 6px; margin: 8px 0; border-radius: 3px; overflow: hidden; background: var(--jp-layout-color3); }
    .kafkalab-home .bar i { display: block; height: 100%; background: var(--jp-success-color1, #1f883d); }
    .kafkalab-home summary { cursor: pointer; padding: 2px 0; }
    .kafkalab-home .labs { margin: 4px 0 0; padding: 0; list-style: none; }
    .kafkalab-home .labs li { display: flex; gap: 6px; padding: 2px 0; }
    .kafkalab-home .labs li > b { flex: none; width: 1em; color: var(--jp-success-color1, #1f883d); }
    .kafkalab-home .labs li > span { margin-left: auto; white-space: nowrap; color: var(--jp-content-font-color2); }
    .kafkalab-home :is(.own, .notice) { margin-bottom: 24px; padding: 14px 16px; border: 1px solid var(--jp-border-color1);
      border-radius: 8px; background: var(--jp-layout-color1); }
    .kafkalab-home .notice { border-left: 4px solid var(--jp-warn-color1, #bf8700); overflow-wrap: anywhere; }
    .kafkalab-home .notice ul { margin: 4px 0; padding-left: 20px; }
    .kafkalab-home :is(.own, .notice) h2 { min-height: 0; }
    .kafkalab-home-button { display: flex; align-items: center; }
    .kafkalab-home-button button { padding: 0 10px; height: 24px; border: 1px solid var(--jp-border-color1); border-radius: 4px;
      font: inherit; color: var(--jp-ui-font-color1); background: var(--jp-layout-color1); cursor: pointer; }
    .kafkalab-home-button button:hover { background: var(--jp-layout-color2); }`;

  const count = (number, word) => `${number} ${word}${number === 1 ? '' : 's'}`;

  /* An element with attributes and children. Text becomes text, never HTML. */
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children.filter(child => child !== null));
    return made;
  }

  /* A link that `open` follows. */
  function link(open, { path, heading = null }, attributes, ...children) {
    const made = element('a', { href: '#', ...attributes }, ...children);
    made.addEventListener('click', event => {
      event.preventDefault();
      open(path, heading);
    });
    return made;
  }

  function card(open, chapter, isCurrent) {
    const passed = chapter.labs.filter(lab => lab.passed).length;
    const sections = chapter.finished ? chapter.sections : chapter.reached;
    const done = (sections + passed) / (chapter.sections + chapter.labs.length);
    const begun = chapter.reached > 0 || passed > 0;
    const howFar = begun
      ? `${sections} of ${count(chapter.sections, 'section')}, ${passed} of ${count(chapter.labs.length, 'lab')}`
      : 'not begun';
    const bar = { class: 'bar', role: 'progressbar', 'aria-label': `Chapter ${Number(chapter.number)}`,
      'aria-valuenow': Math.round(100 * done), 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-valuetext': howFar };
    return element('li', { class: `card${isCurrent ? ' current' : ''}` },
      element('h2', {}, link(open, chapter, {}, `${chapter.number} · ${chapter.title}`)),
      element('div', bar, element('i', { style: `width: ${100 * done}%` })),
      element('p', { class: 'quiet' }, `${chapter.minutes} minutes · ${howFar}`),
      element('details', {}, element('summary', {}, count(chapter.labs.length, 'lab')), labList(open, chapter.labs)));
  }

  function labList(open, labs) {
    return element('ul', { class: 'labs' }, ...labs.map(lab =>
      element('li', {},
        element('b', lab.passed ? { role: 'img', 'aria-label': 'passed' } : { 'aria-hidden': true }, lab.passed ? '✓' : '·'),
        link(open, lab, {}, lab.title),
        lab.minutes ? element('span', {}, `${lab.minutes} min`) : null)));
  }

  function ownPart(open, { title, labs }) {
    return element('section', { class: 'own', 'aria-label': title }, element('h2', {}, title), labList(open, labs));
  }

  /* What a learner would otherwise only read in the terminal. */
  function leftNotice(open, left) {
    const files = left.map(one => element('li', {}, link(open, one, {}, one.path), ` (${one.why})`));
    return element('section', { class: 'notice', 'aria-label': 'Left alone' },
      element('h2', {}, 'Your own versions, left alone'),
      element('p', {}, 'You changed these files, so the course didn’t update them:'),
      element('ul', {}, ...files),
      element('p', { class: 'quiet' }, element('code', {}, 'kafkalab reset NAME'),
        ' in a terminal gives you the course’s version and keeps yours beside it.'));
  }

  function problemNotice(problems) {
    return element('section', { class: 'notice', 'aria-label': 'Problems' },
      element('h2', {}, 'Not all of the course can be used'), ...problems.map(problem => element('p', {}, problem)));
  }

  function goOnLink(open, goOn) {
    const number = /\/(\d\d)_/.exec(goOn.path)[1];
    const place = goOn.heading ? `${number} §${goOn.heading.split(' · ')[0]}` : number;
    const verb = goOn.begun ? 'Continue at' : number === '00' ? 'Begin with' : 'Go on with';
    const name = goOn.heading ? goOn.heading.split(' · ').slice(1).join(' · ') : goOn.title;
    const kind = goOn.path.startsWith('labs/') ? ', a lab' : '';
    return link(open, goOn, { class: 'go-on' }, `${verb} ${place}${kind}`, element('span', {}, name));
  }

  function referenceLinks(open, references) {
    return element('nav', { 'aria-label': 'To look things up' }, ...references.map(one => link(open, one, {}, one.title)));
  }

  function page(open, { chapters, go_on: goOn, references, own, left, problems }) {
    const labs = [...chapters.flatMap(chapter => chapter.labs), ...own?.labs ?? []];
    const passed = labs.filter(lab => lab.passed).length;
    const finished = chapters.filter(chapter => chapter.finished).length;
    return element('div', { class: 'page' },
      element('header', {},
        element('div', {},
          element('h1', {}, 'Your course'),
          element('p', { class: 'sum' },
            `${finished} of ${count(chapters.length, 'chapter')} read, ${passed} of ${count(labs.length, 'lab')} passed`),
          references.length ? referenceLinks(open, references) : null),
        goOn ? goOnLink(open, goOn) : element('p', {}, 'You have done everything.')),
      problems.length ? problemNotice(problems) : null,
      own ? ownPart(open, own) : null,
      left.length ? leftNotice(open, left) : null,
      element('ul', { class: 'cards' }, ...chapters.map(chapter => card(open, chapter, chapter.path === goOn?.path))));
  }

  function defineHome({ Widget }, load, open) {
    return class Home extends Widget {
      constructor() {
        super();
        this.id = ID;
        this.title.label = 'Home';
        this.title.caption = 'All chapters and labs, and where you were';
        this.title.closable = true;
        this.addClass('kafkalab-home');
        this.node.tabIndex = 0;
      }

      onAfterShow() {
        void this.refresh();
      }

      onActivateRequest() {
        this.node.focus({ preventScroll: true });
        void this.refresh();
      }

      /* Show the page as it is now; lists of labs stay unfolded. */
      async refresh() {
        let fresh;
        try {
          fresh = page(open, await load());
        } catch (error) {
          fresh = element('div', { class: 'page' }, element('p', {}, `The server doesn't answer: ${error.message}. Is it still running?`));
        }
        const unfolded = [...this.node.querySelectorAll('details')].map(details => details.open);
        fresh.querySelectorAll('details').forEach((details, place) => {
          details.open = unfolded[place] ?? false;
        });
        if (!this.node.contains(document.activeElement) || document.activeElement === this.node || !this.node.firstChild) {
          this.node.replaceChildren(fresh);
        }
      }
    };
  }

  function activateHome(app, { Widget }, { ServerConnection }, { PageConfig, URLExt }, { WidgetTracker }, ...optional) {
    const [palette, launcher, restorer] = optional;
    document.head.append(element('style', {}, STYLE));
    const settings = ServerConnection.makeSettings();
    const load = async () => {
      const response = await ServerConnection.makeRequest(URLExt.join(settings.baseUrl, 'kafkalab/home'), {}, settings);
      if (!response.ok) {
        throw new ServerConnection.ResponseError(response);
      }
      return response.json();
    };
    const open = async (path, heading) => {
      const factory = path.endsWith('.md') ? 'Markdown Preview' : undefined;
      const notebook = await app.commands.execute('docmanager:open', { path, factory });
      if (heading) {
        await Promise.all([notebook.context.ready, notebook.revealed]);
        await scrollTo(notebook.content, heading.replaceAll('`', '').replaceAll(' ', '-'));
      }
    };
    const Home = defineHome({ Widget }, load, open);
    const tracker = new WidgetTracker({ namespace: ID });
    let home = null;
    const show = () => {
      if (!home || home.isDisposed) {
        home = new Home();
        void tracker.add(home);
      }
      if (!home.isAttached) { // a restored layout without it takes it out of the window
        app.shell.add(home, 'main', { rank: 0 });
      }
      app.shell.activateById(ID);
      return home;
    };
    app.commands.addCommand(COMMAND, { label: 'Home', caption: 'All chapters and labs, and where you were', execute: show });
    palette?.addItem({ command: COMMAND, category: 'Kafka' });
    launcher?.add({ command: COMMAND, category: 'Notebook', rank: -1 });
    void restorer?.restore(tracker, { command: COMMAND, name: () => ID });

    const button = element('button', { type: 'button', title: 'All chapters and labs, and where you were' }, 'Home');
    button.addEventListener('click', show);
    const top = new Widget({ node: element('div') });
    top.node.append(button);
    top.id = `${ID}-button`;
    top.addClass(`${ID}-button`);
    app.shell.add(top, 'top', { rank: 200 }); // behind the menus

    const addressed = PageConfig.getOption('treePath'); // JupyterLab sets it for restored notebooks, too, later
    const behind = PageConfig.getOption('kafkalabHomeBehind'); // where a notice comes first: kafkalab.cli.hosted says so
    let restored = false;
    app.shell.layoutModified?.connect(() => {
      if (restored && app.shell.isEmpty('main')) { // JupyterLab listens later, and opens its launcher only if it's still empty
        show();
      }
    });
    void app.restored.then(() => {
      restored = true;
      if (!addressed && !(behind && !app.shell.isEmpty('main'))) {
        show();
        [...app.shell.widgets('main')].filter(widget => widget.id.startsWith('launcher')).forEach(widget => widget.dispose());
      }
    });
  }

  /* Follow a link to a heading of the same notebook. JupyterLab 4.6 compares its percent-encoded form, so it finds no
   * heading with a character like ·, and it looks only at cells that are in the page already. */
  function followLinksToHeadings(tracker) {
    const follow = event => {
      const link = event.target.closest?.('.jp-Notebook .jp-RenderedMarkdown a[href^="#"]');
      const notebook = link && tracker.find(candidate => candidate.node.contains(link));
      if (notebook) {
        event.preventDefault();
        event.stopPropagation();
        void scrollTo(notebook.content, decodeURIComponent(link.getAttribute('href').slice(1)));
      }
    };
    document.addEventListener('click', follow, true);
  }

  /* Cells that come into the page turn out higher or lower than JupyterLab guessed, and push the heading away again:
   * keep it at the top until they are there, or until the reader goes elsewhere. */
  async function scrollTo(content, heading) {
    const { node } = content;
    const elsewhere = new AbortController();
    for (const event of ['wheel', 'keydown', 'pointerdown']) {
      node.addEventListener(event, () => elsewhere.abort(), { signal: elsewhere.signal });
    }
    let end = performance.now() + OPENS;
    let settling = false;
    while (!elsewhere.signal.aborted && performance.now() < end) {
      const found = node.querySelector(`[data-jupyter-id="${CSS.escape(heading)}"]`);
      if (found && !settling) {
        settling = true;
        end = performance.now() + SETTLES;
      }
      if (!found || Math.abs(found.getBoundingClientRect().top - node.getBoundingClientRect().top) > NEAR) {
        await content.setFragment(`#heading=${heading}`);
      }
      await new Promise(requestAnimationFrame);
    }
    elsewhere.abort();
  }

  let scope;

  async function shared(name) {
    const versions = Object.values(scope[name]);
    const chosen = versions.find(version => version.loaded) ?? versions[0];
    return (await chosen.get())();
  }

  async function plugins() {
    const names = ['notebook', 'apputils', 'launcher', 'application', 'services', 'coreutils'].map(name => `@jupyterlab/${name}`);
    const found = await Promise.all([...names, '@lumino/widgets'].map(shared));
    const [notebook, apputils, launcher, application, services, coreutils, widgets] = found;
    return [
      {
        id: `${ID}:plugin`,
        description: "Shows the course's chapters and labs, and where the learner was.",
        autoStart: true,
        optional: [apputils.ICommandPalette, launcher.ILauncher, application.ILayoutRestorer],
        activate: (app, ...optional) => activateHome(app, widgets, services, coreutils, apputils, ...optional),
      },
      {
        id: `${ID}:anchors`,
        description: 'Follows links to the headings of a notebook.',
        autoStart: true,
        requires: [notebook.INotebookTracker],
        activate: (app, tracker) => followLinksToHeadings(tracker),
      },
    ];
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB['kafkalab-home'] = {
    init: shares => {
      scope = shares;
    },
    get: async () => {
      const found = await plugins();
      return () => ({ __esModule: true, default: found });
    },
  };
})();
