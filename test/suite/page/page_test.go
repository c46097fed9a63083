package page_test

import (
	"fmt"
	"image"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestPage looks at the page of a cluster of which one source fails, and one observer reads rows of
// which none can become an event.
func TestPage(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.poison(t)
	c.fail(t)
	settled := open(t, c.south)
	settled.judges("failing")
	settled.shows("payments", "does not exist")
	settled.shows("returns", "poison")
	t.Run("content", func(t *testing.T) { content(t, c) })
	for name, look := range map[string]func(*testing.T, *cluster){
		"light and dark": schemes, "phone": onAPhone, "keyboard": byKeyboard, "no scripts": scriptless, "polls": pollByPoll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look(t, c)
		})
	}
}

func content(t *testing.T, c *cluster) {
	tab := open(t, c.north)
	tellsAll(tab)
	tab.shows("orders", "shop", "7")
	// Times are relative; the absolute one is in a tooltip.
	tab.until(`all('time').length > 0 && all('time').every(e => !isNaN(Date.parse(e.dateTime)) && e.title.includes(new Date(e.dateTime).getUTCFullYear()))`)
	tab.until(`document.documentElement.lang === 'en'`)
}

// tellsAll wants all that a reader has to know of the cluster.
func tellsAll(tab *tab) {
	tab.t.Helper()
	tab.judges("failing")
	tab.shows("payments", "does not exist", "observerd observers show payments")
	tab.shows("returns", "poison", "observerd dead list --observer returns")
	for _, runbook := range []string{"ObserverdTypeNotSucceeding", "ObserverdOnlyPoison"} {
		tab.until(fmt.Sprintf(`all('a[href]').some(e => e.href.includes(%q))`, runbook))
	}
	tab.shows("orders", "shop")
	tab.shows("payments", "bank")
	tab.shows("north")
	tab.shows("south")
	tab.shows("ledger", "0")
}

func schemes(t *testing.T, c *cluster) {
	for name, bright := range map[string]bool{"light": true, "dark": false} {
		tab := open(t, c.north, scheme(name), resize(desk))
		tellsAll(tab)
		if got := luminance(tab.picture(name)); got > 0.5 != bright {
			t.Errorf("%s: the background has a luminance of %.2f", name, got)
		}
		tab.openAll()
		tab.accessible(name)
	}
}

// luminance is that of the margin of a picture, from 0 for black to 1 for white.
func luminance(seen image.Image) float64 {
	r, g, b, _ := seen.At(2, seen.Bounds().Dy()-3).RGBA()
	return (0.2126*float64(r) + 0.7152*float64(g) + 0.0722*float64(b)) / 0xffff
}

// openAll opens all that can be opened.
func (b *tab) openAll() {
	b.t.Helper()
	answer[int](b, `(document.querySelectorAll('details').forEach(e => e.open = true), 0)`)
}

func onAPhone(t *testing.T, c *cluster) {
	for _, name := range []string{"light", "dark"} {
		tab := open(t, c.north, scheme(name), resize(phone))
		tellsAll(tab)
		tab.picture("phone-" + name)
		for _, state := range []string{"closed", "open"} {
			const wide = `all('body *').filter(e => e.getBoundingClientRect().right > 390.5).map(say)`
			if width := answer[int](tab, `document.documentElement.scrollWidth`); width > int(phone.width) {
				t.Errorf("%s: the page is %d pixels wide: %q", state, width, answer[[]string](tab, wide))
			}
			tab.openAll()
		}
		tab.accessible("phone, " + name)
	}
}

// focus is where the keyboard is.
type focus struct {
	Path, Name   string
	Closed, Seen bool
}

// byKeyboard opens all that can be opened, and goes wherever a mouse could click, with Tab and
// Enter alone. What was opened stays open, and what was scrolled to stays there, when the page
// is refreshed.
func byKeyboard(t *testing.T, c *cluster) {
	tab := open(t, c.north, resize(size{desk.width, 500}))
	tellsAll(tab)
	been, opened, at := make(map[string]bool), 0, focus{}
	for again := 0; again < 2; {
		if now := answer[focus](tab, `focused()`); at.Path != "" && now.Path != at.Path {
			t.Fatalf("a refresh took the focus from %s to %s", at.Name, now.Name)
		}
		tab.do(chromedp.KeyEvent(kb.Tab))
		at = answer[focus](tab, `focused()`)
		if at.Path == "" || been[at.Path] {
			again++ // The end of the page, or its beginning.
		} else if !at.Seen {
			t.Errorf("nobody sees that %s has the focus", at.Name)
		}
		been[at.Path] = true
		if at.Closed {
			tab.do(chromedp.KeyEvent(kb.Enter))
			opened++
			tab.until(`!focused().closed`)
		}
	}
	for _, target := range answer[[]focus](tab, `reachable().map(e => ({path: path(e), name: say(e), closed: e.tagName === 'SUMMARY' && !e.parentElement.open}))`) {
		if !been[target.Path] || target.Closed {
			t.Errorf("the keyboard did not reach or open %s", target.Name)
		}
	}
	if opened == 0 {
		t.Error("nothing could be opened, so nothing is proved")
	}
	refreshes(t, c, tab)
}

// refreshes wants that the page shows what is new without being loaded anew.
func refreshes(t *testing.T, c *cluster, tab *tab) {
	t.Helper()
	type state struct {
		Open    []string
		Y       int
		Focused string
	}
	const now = `({open: all('details[open]').map(path), y: Math.round(scrollY), focused: path(document.activeElement)})`
	answer[int](tab, `(all('main a[href]')[0].focus(), scrollTo(0, 100), window.kept = true, 0)`)
	before := answer[state](tab, now)
	if before.Y == 0 || before.Focused == "" {
		t.Errorf("%v: nothing is scrolled or focused, so nothing is proved", before)
	}
	c.order(t, 1001, 1234)
	tab.until(`window.kept === true && /1,?241|1\.2 ?k/.test(document.body.innerText)`)
	if after := answer[state](tab, now); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("before the refresh: %v, after it: %v", before, after)
	}
}

// scriptless has scripts forbidden: the page says the same, opens, and is loaded anew by itself.
func scriptless(t *testing.T, c *cluster) {
	tab := open(t, c.north, withoutScripts(), resize(desk))
	tellsAll(tab)
	tab.picture("no-scripts")
	tab.until(`all('details').length > 0`)
	tab.until(`/polls, .* failed, up to/.test(strip('payments').querySelector('title').textContent)`)
	for len(answer[[]string](tab, `all('details:not([open]) > summary').map(say)`)) > 0 {
		tab.do(chromedp.Click(chromedp.CSS("details:not([open]) > summary")))
	}
	first := answer[float64](tab, `performance.timeOrigin`)
	tab.until(fmt.Sprintf(`performance.timeOrigin > %f + 1`, first))
	tellsAll(tab)
}

// pollByPoll has the pointer and the arrow keys go along the last polls of observers, which each
// have a tooltip. Those of the payments succeeded at first.
func pollByPoll(t *testing.T, c *cluster) {
	tab := open(t, c.north, resize(desk))
	tab.until(`bar('payments', 59) === 'f' && bar('orders', 59) === ''`)
	tab.point("orders", 59)
	tab.until(`/^20..-..-.. ..:..:.. utc: ok, took \d+ m?s, \d+ rows?$/.test(tip())`)
	tab.point("payments", 0)
	tab.until(`/^\d+ polls, \d+ failed/.test(tip())`)
	tab.alongBars("payments")
	tab.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 5, 5))
	tab.until(`!tip()`)

	answer[int](tab, `(strip('payments').focus(), window.kept = true, 0)`)
	tab.until(`/does not exist/.test(tip())`)
	tab.do(chromedp.KeyEvent(kb.Home))
	tab.until(`/^\d+ polls, \d+ failed/.test(tip()) || / utc: /.test(tip()) && bar('payments', 0) !== null`)
	at := answer[string](tab, `document.getElementById('at').textContent`)
	tab.until(fmt.Sprintf(`document.getElementById('at').textContent !== %q && document.activeElement === strip('payments') && tip() !== ''`, at))
	tab.do(chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowLeft))
	tab.until(`/ utc: /.test(tip())`)
	tab.picture("poll")
	tab.accessible("a tooltip")
	tab.do(chromedp.KeyEvent(kb.Escape))
	tab.until(`!tip() && window.kept`)
}

// point has the pointer go to a place of the strip of an observer.
func (b *tab) point(observer string, n int) {
	b.t.Helper()
	type place struct{ X, Y float64 }
	at := answer[place](b, fmt.Sprintf(`(strip(%[1]q).scrollIntoView({block: 'center'}), (box => ({x: box.x + box.width*(%[2]d + 0.5)/60, y: box.y + 6}))(strip(%[1]q).getBoundingClientRect()))`, observer, n))
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X, at.Y))
}

// alongBars goes along all bars: each tooltip has the color of its bar, and is that of a later
// poll. A poll that ends meanwhile moves them all, so it tries again.
func (b *tab) alongBars(observer string) {
	b.t.Helper()
	eventually(b.t, func() error {
		last, ok, failed := "", 0, 0
		for n := range 60 {
			if !answer[bool](b, fmt.Sprintf(`bar(%q, %d) !== null`, observer, n)) {
				continue
			}
			b.point(observer, n)
			b.until(fmt.Sprintf(`/ utc: /.test(tip()) && tip() > %q`, last))
			last = answer[string](b, `tip()`)
			good := strings.Contains(last, " utc: ok,")
			if color := answer[string](b, fmt.Sprintf(`bar(%q, %d)`, observer, n)); (color == "") != good {
				return fmt.Errorf("bar %d has the color %q: %s", n, color, last)
			}
			if good {
				ok++
			} else {
				failed++
			}
		}
		if ok == 0 || failed == 0 {
			return fmt.Errorf("%d polls that succeeded and %d that failed, so nothing is proved", ok, failed)
		}
		return nil
	})
}
