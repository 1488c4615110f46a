/* A JupyterLab extension: dots that run where records do, over the live map of a cluster.
 *
 * `kafkalab.widgets.flows` says which way records move and how fast, and has the dots' style sheet. This file sends dots on
 * their way, in an element of its own: what the kernel draws anew below leaves them alone. The browser's compositor moves them.
 *
 * They run in waves, because each frame costs the browser as much for one dot as for all. In between it rests.
 */
(() => {
  const WAVE = 4000; // milliseconds from one wave to the next
  const RUN = 900; // that a dot is on its way
  const APART = 80; // between two dots of a flow
  const DOTS = [0, 1, 2, 3, 4]; // of a flow, by speed
  const MOST = 40; // dots on a map; with more flows than that, some have none

  const less = matchMedia('(prefers-reduced-motion: reduce)');

  /* The flows of a map whose two ends can be seen, with where they begin and end. */
  function visible(map) {
    const unfolded = [...map.querySelectorAll('[data-spot]')].filter(spot => spot.checkVisibility());
    const spots = new Map(unfolded.map(spot => [spot.dataset.spot, spot]));
    const origin = map.getBoundingClientRect();
    const zoom = origin.width / map.offsetWidth || 1;
    const place = ({ left, right }, y) =>
      `translate(${((left + right) / 2 - origin.left) / zoom}px, ${(y - origin.top) / zoom}px)`;
    return told(map).flatMap(([start, end, speed]) => {
      const [from, to] = [start, end].map(spot => spots.get(spot)?.getBoundingClientRect());
      if (!from || !to) {
        return [];
      }
      // From the lower edge to the upper one; along the lower one in a line of text.
      const y = from.bottom > to.bottom - 2 ? to.bottom : to.top;
      return [{ way: wayOf(start, end), read: start.includes(' '), from: place(from, from.bottom), to: place(to, y), speed }];
    });
  }

  const told = map => JSON.parse(map.querySelector('.kafkalab-flows')?.dataset.flows ?? '[]');
  const wayOf = (start, end) => `${start}\n${end}`;

  function layerOf(map) {
    const layer = map.querySelector(':scope > .kafkalab-dots') ?? document.createElement('div');
    if (!layer.isConnected) {
      layer.className = 'kafkalab-dots';
      layer.setAttribute('aria-hidden', 'true');
      map.append(layer);
    }
    return layer;
  }

  function send(map) {
    const flows = visible(map);
    const share = Math.min(1, MOST / flows.reduce((sum, { speed }) => sum + DOTS[speed], 0));
    const each = Math.ceil(flows.length / MOST);
    const dots = [];
    for (const { way, read, from, to, speed } of flows.filter((_, number) => number % each === 0)) {
      for (let index = 0; index < Math.max(1, Math.floor(DOTS[speed] * share)); index++) {
        const dot = document.createElement('span');
        dot.className = read ? 'read' : 'written';
        dot.dataset.way = way;
        dots.push([dot, { transform: [from, to], opacity: [0, 1, 1, 1, 1, 1, 0] }, index]);
      }
    }
    layerOf(map).replaceChildren(...dots.map(([dot]) => dot)); // all at once: each change costs the browser a frame
    dots.forEach(([dot, keyframes, index]) => dot.animate(keyframes, { duration: RUN, delay: index * APART, fill: 'both' }));
  }

  /* Records stop at once where they can't move any more. */
  function stop(map) {
    const ways = new Set(told(map).map(([start, end]) => wayOf(start, end)));
    for (const dot of map.querySelectorAll(':scope > .kafkalab-dots > span')) {
      if (!ways.has(dot.dataset.way)) {
        dot.remove();
      }
    }
  }

  function activate() {
    const maps = new Set();
    let timer = 0;
    const wave = () => {
      for (const map of maps) {
        if (!map.isConnected || !told(map).length) {
          maps.delete(map);
        } else if (!document.hidden && !less.matches) {
          send(map);
        }
      }
      if (!maps.size) {
        clearInterval(timer);
        timer = 0;
      }
    };
    // The style sheet gives each new element of flows an animation, so that it's heard of here.
    document.addEventListener('animationstart', ({ animationName, target }) => {
      const map = animationName === 'kafkalab-flows' && target.closest('.kafkalab-map');
      if (map) {
        stop(map);
        maps.add(map);
        if (!timer) {
          timer = setInterval(wave, WAVE);
          wave();
        }
      }
    });
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB['kafkalab-motion'] = {
    init: () => {},
    get: async () => {
      const plugin = {
        id: 'kafkalab-motion:plugin',
        description: 'Moves records through the map of a cluster.',
        autoStart: true,
        activate,
      };
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
