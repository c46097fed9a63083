package page_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"github.com/observerd/observerd/test/kit/browsertest"
	"github.com/observerd/observerd/test/kit/daemon"
)

//go:embed probe.js
var probe string

// size is that of a window, in pixels.
type size struct{ width, height int64 }

var desk, phone = size{1280, 900}, size{390, 844}

// tab is a window of the browser, with a profile of its own, that shows a node's page.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu sync.Mutex
	// said are the errors on the console, asked the addresses of requests.
	said, asked []string
}

// open opens the page of a node, after these preparations. When the test ends, it wants that the
// page has said no error and has asked nobody but the node.
func open(t *testing.T, node *daemon.Process, before ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	address, err := node.Address()
	must(t, err)
	tab := &tab{t: t, origin: "http://" + address + "/"}
	// The tab is closed after the test's own context.
	browser, disconnect := remote.NewAllocator(context.WithoutCancel(t.Context()), browsertest.URL(t), remote.NoModifyURL)
	ctx, shut := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(tab.watch))
	t.Cleanup(func() {
		tab.flawless()
		shut()
		disconnect()
	})
	tab.ctx = ctx
	must(t, chromedp.Do(ctx)) // This one lives as long as the tab, so it has no deadline.
	tab.do(append(before, chromedp.Navigate(tab.origin))...)
	return tab
}

// watch hears of all that happens in the tab.
func (b *tab) watch(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *network.EventWebSocketCreated:
		b.asked = append(b.asked, e.URL)
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, "exception: "+asJSON(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		b.said = append(b.said, string(e.Type)+": "+asJSON(e.Args))
	case *log.EventEntryAdded:
		b.said = append(b.said, string(e.Entry.Level)+": "+e.Entry.Text+" "+asJSON(e.Entry.URL))
	}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// flawless wants that the page has said nothing on the console and asked nobody but its node.
func (b *tab) flawless() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.said {
		b.t.Errorf("the page says on the console: %s", line)
	}
	if len(b.asked) == 0 {
		b.t.Error("no request was seen, so nothing is proved")
	}
	for _, url := range slices.Compact(slices.Sorted(slices.Values(b.asked))) {
		if !strings.HasPrefix(url, b.origin) && !strings.HasPrefix(url, "data:") {
			b.t.Errorf("the page asks for %s", url)
		}
	}
}

// limited bounds what is asked of the browser.
func (b *tab) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, patience)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	must(b.t, chromedp.Do(ctx, steps...))
}

// ask evaluates an expression, which may use what probe.js has.
func ask[T any](b *tab, expression string) (T, error) {
	ctx, cancel := b.limited()
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T]("(() => {"+probe+";\nreturn ("+expression+")})()", chromedp.EvalAwaitPromise))
}

// answer is what the page answers.
func answer[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := ask[T](b, expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	eventually(b.t, func() error {
		// Where the page is loaded anew meanwhile, the question is lost.
		ok, err := ask[bool](b, expression)
		if err == nil && !ok {
			err = fmt.Errorf("not: %s; the page says:\n%s", expression, b.text())
		}
		return err
	})
}

// text is all that can be read.
func (b *tab) text() string {
	text, err := ask[string](b, "document.title + '\\n' + document.body.innerText")
	if err != nil {
		return err.Error()
	}
	return text
}

// quote writes words as a list of JavaScript.
func quote(words ...string) string { return asJSON(words) }

// most is how long the text of a card or a row may be: more is a whole section.
const most = 700

// shows waits until a card or a row has all of these texts.
func (b *tab) shows(words ...string) {
	b.t.Helper()
	b.until(fmt.Sprintf("near(%[1]s) && text(near(%[1]s)).length < %[2]d || false", quote(words...), most))
}

// hides waits until no card or row has all of these texts.
func (b *tab) hides(words ...string) {
	b.t.Helper()
	b.until(fmt.Sprintf("!near(%[1]s) || text(near(%[1]s)).length >= %[2]d", quote(words...), most))
}

// judges waits until headline and title have the verdict.
func (b *tab) judges(verdict string) {
	b.t.Helper()
	b.until(fmt.Sprintf("level() === %q && document.title.toLowerCase().includes(%[1]q)", verdict))
}

// resize gives the window a size; a phone has other rules for it.
func resize(s size) chromedp.Action[chromedp.Void] {
	if s == phone {
		return chromedp.EmulateViewport(s.width, s.height, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	return chromedp.EmulateViewport(s.width, s.height)
}

// scheme says which colours the reader prefers: light or dark.
func scheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}

// withoutScripts is a browser in which pages run none.
func withoutScripts() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}

// picture writes what the whole page looks like to .cache/page, and returns it.
func (b *tab) picture(name string) image.Image {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	must(b.t, err)
	folder := filepath.Join(cache(b.t), "page")
	must(b.t, os.MkdirAll(folder, 0o755))
	must(b.t, os.WriteFile(filepath.Join(folder, name+".png"), text, 0o644))
	seen, err := png.Decode(bytes.NewReader(text))
	must(b.t, err)
	return seen
}

// cache is the folder for what is downloaded and left behind.
func cache(t *testing.T) string {
	t.Helper()
	root, err := daemon.Root(t.Context())
	must(t, err)
	return filepath.Join(root, ".cache")
}
