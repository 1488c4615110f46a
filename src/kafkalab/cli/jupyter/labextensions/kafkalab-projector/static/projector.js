/* A JupyterLab extension: type that is large enough for a projector.
 *
 * `kafkalab lab --projector` begins so. The command kafkalab:projector, "Projector Mode" in the command palette, turns it on
 * and off. All of it is a class of the page, so that no setting of the learner's changes.
 *
 * Pictures and the panel have sizes of their own, in pixels. They are enlarged as a whole.
 *
 * Shift+Enter goes on to the next cell and scrolls there, while a class looks at the one that runs. Once it has run, it comes
 * back into view, unless somebody has gone elsewhere meanwhile.
 */
(() => {
  const CLASS = 'kafkalab-projector';
  const ENLARGED = '.kafkalab-panel > *, .jp-OutputArea-output > .jupyter-widgets, :is(.jp-RenderedHTML, .jp-RenderedSVG).jp-OutputArea-output > *';
  const STYLE = `
    :root.${CLASS} {
      --jp-code-font-size: 18px; --jp-content-font-size1: 20px; --jp-ui-font-size1: 18px; --jp-widgets-font-size: 18px;
    }
    :root.${CLASS} :is(${ENLARGED}) {
      --jp-code-font-size: 13px; --jp-content-font-size1: 14px; --jp-ui-font-size1: 13px; --jp-widgets-font-size: 13px;
      zoom: 1.4;
    }
    :root.${CLASS} .lm-MenuBar, :root.${CLASS} .jp-Toolbar { --jp-ui-font-size1: 15px; }`;

  function showWhatHasRun({ notebook, cell }) {
    const beyond = notebook.activeCellIndex - notebook.widgets.indexOf(cell);
    if (beyond !== 0 && beyond !== 1) return;
    const fits = cell.node.offsetHeight <= notebook.node.clientHeight;
    (fits || !cell.outputArea ? cell : cell.outputArea).node.scrollIntoView({ block: 'nearest' });
  }

  function activate(app, { PageConfig }, { NotebookActions }, palette) {
    const sheet = document.createElement('style');
    sheet.textContent = STYLE;
    document.head.append(sheet);
    const page = document.documentElement.classList;
    page.toggle(CLASS, PageConfig.getOption('kafkalabProjector') === 'true');
    app.commands.addCommand('kafkalab:projector', {
      label: 'Projector Mode',
      isToggled: () => page.contains(CLASS),
      execute: () => {
        page.toggle(CLASS);
        app.commands.notifyCommandChanged('kafkalab:projector');
        window.dispatchEvent(new Event('resize')); // editors measure their lines anew
      },
    });
    palette.addItem({ command: 'kafkalab:projector', category: 'Kafka' });
    NotebookActions.executed.connect((_, ran) => {
      // A frame later: the last output is laid out by then.
      if (page.contains(CLASS)) requestAnimationFrame(() => showWhatHasRun(ran));
    });
  }

  let scope;

  async function shared(name) {
    const versions = Object.values(scope[name]);
    const chosen = versions.find(version => version.loaded) ?? versions[0];
    return (await chosen.get())();
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB['kafkalab-projector'] = {
    init: shares => {
      scope = shares;
    },
    get: async () => {
      const needed = ['coreutils', 'apputils', 'notebook'];
      const [coreutils, apputils, notebook] = await Promise.all(needed.map(name => shared(`@jupyterlab/${name}`)));
      const plugin = {
        id: 'kafkalab-projector:plugin',
        description: 'Makes type large enough for a projector, and keeps in view what has run.',
        autoStart: true,
        requires: [apputils.ICommandPalette],
        activate: (app, palette) => activate(app, coreutils, notebook, palette),
      };
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
