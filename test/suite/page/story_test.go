package page_test

import "testing"

// TestTroubleAppears keeps the page of one node open while its cluster gets into trouble and out of
// it. Nobody loads it anew.
func TestTroubleAppears(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	tab := open(t, c.north, resize(desk))
	tab.judges("ok")
	tab.shows("orders", "7")
	healthy := tab.icon()
	tab.picture("ok")
	tab.accessible("ok")
	answer[int](tab, `(window.kept = true, 0)`)

	c.fail(t)
	tab.shows("payments", "does not exist", "observerd observers show payments")
	tab.judges("failing")
	if tab.icon() == healthy {
		t.Error("the icon of a cluster that fails is that of a healthy one")
	}
	c.recover(t)
	tab.judges("ok")
	tab.hides("payments", "does not exist")

	c.poison(t)
	tab.shows("returns", "all are poison", "observerd dead list --observer returns")
	tab.judges("failing")

	c.south.Kill()
	tab.shows("node south", "died")
	tab.picture("node-killed")
	tab.accessible("a node was killed")

	c.link.Refuse(true)
	c.link.Cut()
	tab.shows("north", "coordination database")
	tab.picture("database-down")
	tab.accessible("the database is down")
	c.link.Refuse(false)
	tab.shows("node south", "died")
	tab.until(`window.kept === true`)
}

// icon is that of the tab.
func (b *tab) icon() string {
	b.t.Helper()
	return answer[string](b, `document.querySelector('link[rel~=icon]')?.href ?? ''`)
}
