"""The panel beside the notebook."""

from __future__ import annotations

from ipywidgets.widgets.widget import _instances

from kafkalab import running
from kafkalab.waiting import wait_until
from kafkalab.widgets import ClusterMap
from kafkalab.widgets.panel import ClusterPanel
from support import PATIENCE
from widget_support import TOPIC, WIDGET_VIEW, FakeCluster, Shown, html, maps_in, show


def test_the_panel_is_empty_until_a_cluster_starts_and_says_when_it_has_stopped(
    panel: ClusterPanel, cluster: FakeCluster
) -> None:
    assert maps_in(panel) == ()
    panel.follow(cluster, cluster.nodes.on_stop, ClusterMap)
    (shown_map,) = maps_in(panel)
    wait_until(lambda: "3 of 3 nodes up" in html(shown_map), PATIENCE, "the map to be drawn")
    cluster.stop()
    (words,) = maps_in(panel)
    assert "The cluster has stopped." in html(words)


def test_a_map_that_a_cell_shows_takes_the_place_of_the_panels_own(
    panel: ClusterPanel, cluster: FakeCluster, shown: Shown
) -> None:
    panel.follow(cluster, cluster.nodes.on_stop, ClusterMap)
    (own,) = maps_in(panel)
    cell_map = ClusterMap(cluster, topics=TOPIC)
    show(cell_map)
    assert maps_in(panel) == (cell_map.widget,)
    assert own.comm is None  # closed: it would be drawn for nobody
    ((bundle,),) = shown.values()
    assert bundle[WIDGET_VIEW]["model_id"] != cell_map.widget.model_id  # a line that says where the map is
    assert "text/html" in bundle
    cluster.stop()
    assert set(next(iter(shown.values()))[-1]) == {"text/html", "text/plain"}


def test_two_clusters_stand_one_below_the_other_under_their_names(panel: ClusterPanel) -> None:
    clusters = [FakeCluster("<home>"), FakeCluster("backup")]
    for one in clusters:
        panel.follow(one, one.nodes.on_stop, ClusterMap)
    assert [child.value for child in maps_in(panel)[::2]] == ["<b>&lt;home&gt;</b>", "<b>backup</b>"]
    clusters[0].stop()
    assert len(maps_in(panel)) == 1
    clusters[1].stop()


def test_who_wants_to_hear_of_clusters_hears_of_those_that_run_and_of_those_that_start() -> None:
    register: running.Register[FakeCluster] = running.Register()
    clusters, heard = [FakeCluster(str(number)) for number in range(3)], []
    for one in clusters[:2]:
        register.announce(one, one.nodes.on_stop)
    clusters[0].stop()
    register.for_each(lambda one, on_stop: heard.append(one))
    register.announce(clusters[2], clusters[2].on_stop)
    assert heard == clusters[1:]


def test_without_a_panel_the_first_map_says_where_there_is_one(cluster: FakeCluster, shown: Shown) -> None:
    """As in Notebook 7. Nothing of it is stored."""
    first, second = ClusterMap(cluster), ClusterMap(cluster)
    for cluster_map in (first, second):
        show(cluster_map)
    views = [bundle[WIDGET_VIEW]["model_id"] for (bundle,) in shown.values()]
    assert views[1] == second.widget.model_id
    holder = _instances[views[0]]
    assert holder.children[0] is first.widget
    assert "In JupyterLab, the live map stands in a panel beside the notebook." in html(holder)
    for (bundle,) in shown.values():
        assert not any("In JupyterLab" in str(form) for media, form in bundle.items() if media != WIDGET_VIEW)
    cluster.stop()
    assert holder.comm is None  # closed with the map
