/* A JupyterLab extension: links within a notebook find their heading.
 *
 * This file is what the browser loads: a module-federation container written by hand, so it needs no build.
 * `init` receives the modules that JupyterLab shares, `get` returns ours.
 */
(() => {
  const SETTLES = 3000; // milliseconds
  const NEAR = 60; // pixels

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
    const end = performance.now() + SETTLES;
    while (!elsewhere.signal.aborted && performance.now() < end) {
      const found = node.querySelector(`[data-jupyter-id="${CSS.escape(heading)}"]`);
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
    const notebook = await shared('@jupyterlab/notebook');
    return [
      {
        id: 'kafkalab-home:anchors',
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
