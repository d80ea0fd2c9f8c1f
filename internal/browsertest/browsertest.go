// Package browsertest opens pages in a headless Chromium for tests: it collects what goes wrong in them, asks their
// DOM, plays the reader's screen, paper, mouse and taste for the dark, and takes pictures. The browser reaches this
// machine and nothing else.
//
// Tests that need the browser are named TestBrowser…: .ci/browser runs them, with HINDSIGHT_BROWSER=require. With
// HINDSIGHT_BROWSER=try they skip where there is no browser, and say how to get one; without it they skip, for they
// take seconds. HINDSIGHT_PICTURES=DIR keeps pictures.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take to do what a test waits for.
const patience = 30 * time.Second

// programs are the names under which Chromium and its kin are installed.
var programs = []string{"chromium", "chromium-headless-shell", "chromium-browser", "google-chrome",
	"google-chrome-stable"}

var errNone = errors.New("no Chromium here; Debian has it: apt-get install chromium (.ci/browser does it and runs " +
	"the tests)")

// find returns the path of the browser: that of HINDSIGHT_CHROMIUM, or the first of the usual names in PATH.
func find() (string, error) {
	if own := os.Getenv("HINDSIGHT_CHROMIUM"); own != "" {
		path, err := exec.LookPath(own)
		if err != nil {
			return "", fmt.Errorf("HINDSIGHT_CHROMIUM=%s: %w", own, err)
		}
		return path, nil
	}
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNone
}

// Browser is a running browser. It takes a second or so to start: tests of one page may share it.
type Browser struct{ ctx context.Context }

// Start starts a browser, which stops with the test; or it skips the test, as the package says.
func Start(t testing.TB) *Browser {
	t.Helper()
	path, err := find()
	switch wanted := os.Getenv("HINDSIGHT_BROWSER"); {
	case wanted == "":
		t.Skip("a browser takes seconds: .ci/browser runs this, or HINDSIGHT_BROWSER=try")
	case err != nil && wanted == "require":
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("hide-scrollbars", true),
	)
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return &Browser{ctx}
}

// Page is a tab. Its methods fail the test when the browser cannot do what they ask.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
	requests []string
	urls     map[string]string // of requests by their id
}

// Open opens a URL in a tab of its own, 1280 × 800 pixels, light, and waits until it is
// loaded. A file is given by its absolute path.
func (b *Browser) Open(t testing.TB, url string) *Page {
	t.Helper()
	if filepath.IsAbs(url) {
		url = "file://" + url
	}
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx, urls: map[string]string{}}
	if err := chromedp.Listen(ctx, p.event); err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	p.Size(1280, 800)
	p.Media(Media{})
	p.do("open "+url, chromedp.Navigate(url))
	return p
}

// run runs an action; what says what it is for.
func run[T any](p *Page, what string, a chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		p.t.Fatalf("%s: %v; the page says %q", what, err, p.Problems())
	}
	return v
}

func (p *Page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	run(p, what, chromedp.Steps(steps...))
}

// Eval returns the value of a JavaScript expression, or of what it promises.
func Eval[T any](p *Page, js string) T {
	p.t.Helper()
	return run(p, js, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
}

// Wait waits until a JavaScript expression is true.
func (p *Page) Wait(js string) {
	p.t.Helper()
	run(p, "wait for "+js, chromedp.Poll[bool](js, chromedp.WithPollingInterval(20*time.Millisecond),
		chromedp.WithPollingTimeout(patience)))
}

// Size sets the size of the window in pixels.
func (p *Page) Size(width, height int) {
	p.t.Helper()
	p.do("size", chromedp.EmulateViewport(int64(width), int64(height)))
}

// Media is what the page is shown on.
type Media struct{ Print, Dark bool }

// Media sets what the page is shown on.
func (p *Page) Media(m Media) {
	p.t.Helper()
	params := emulation.SetEmulatedMediaParams{Media: "screen",
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}}
	if m.Print {
		params.Media = "print"
	}
	if m.Dark {
		params.Features[0].Value = "dark"
	}
	p.do("media", call(emulation.SetEmulatedMedia, params))
}

// call makes an action of a command of the protocol whose result does not matter.
func call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// Click clicks on the middle of the first element that a CSS selector finds.
func (p *Page) Click(css string) {
	p.t.Helper()
	p.do("click on "+css, chromedp.Click(chromedp.CSS(css)))
}

// Hover moves the mouse over the first element that a CSS selector finds, to the given shares of its width and height.
func (p *Page) Hover(css string, across, down float64) {
	p.t.Helper()
	at := Eval[[4]float64](p, fmt.Sprintf(`(e => { e.scrollIntoView({block: "center"}); const r = `+
		`e.getBoundingClientRect();
		return [r.left, r.top, r.width, r.height]; })(document.querySelector(%q))`, css))
	p.do("hover over "+css, call(input.DispatchMouseEvent, input.DispatchMouseEventParams{
		Type: input.DispatchMouseEventTypeMouseMoved, X: at[0] + across*at[2], Y: at[1] + down*at[3]}))
}

// Picture returns the whole page as PNG, and writes it to NAME.png in the folder HINDSIGHT_PICTURES if that is set.
func (p *Page) Picture(name string) []byte {
	p.t.Helper()
	png := run(p, "picture", chromedp.FullScreenshot(100))
	p.keep(name+".png", png)
	return png
}

// PDF returns the page as it is printed on A4, and keeps it like a picture.
func (p *Page) PDF(name string) []byte {
	p.t.Helper()
	pdf := run(p, "print", func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, t, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: 8.27, PaperHeight: 11.69,
			PrintBackground: new(false)})
		return r.Data, err
	})
	p.keep(name+".pdf", pdf)
	return pdf
}

func (p *Page) keep(file string, b []byte) {
	dir := os.Getenv("HINDSIGHT_PICTURES")
	if dir == "" {
		return
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, file), b, 0o644)
	}
	if err != nil {
		p.t.Error(err)
	}
}
