/* A JupyterLab extension: type that is large enough for a projector.
 *
 * `kafkalab lab --projector` begins so. The command kafkalab:projector, "Projector Mode" in the command palette, turns it on
 * and off. All of it is a class of the page, so that no setting of the learner's changes.
 *
 * Pictures and the panel have sizes of their own, in pixels. They are enlarged as a whole.
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

  function activate(app, { PageConfig }, palette) {
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
      const [coreutils, apputils] = await Promise.all(['coreutils', 'apputils'].map(name => shared(`@jupyterlab/${name}`)));
      const plugin = {
        id: 'kafkalab-projector:plugin',
        description: 'Makes type large enough for a projector.',
        autoStart: true,
        requires: [apputils.ICommandPalette],
        activate: (app, palette) => activate(app, coreutils, palette),
      };
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
