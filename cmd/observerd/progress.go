package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/observerd/observerd/internal/admin"
)

// lineEvery is the time between two lines where no bar can be drawn.
const lineEvery = 5 * time.Second

// permille is the length of the bar: what is done of the range, not of its
// rows, whose number is unknown.
const permille = 1000

// progress shows how far a backfill is: as a bar where a person looks at it,
// as lines elsewhere.
type progress struct {
	w     io.Writer
	quiet bool
	bar   *progressbar.ProgressBar // nil where there are lines

	began time.Time
	rows  int64     // when it began
	seen  bool      // there was a report
	last  time.Time // of the last line
	said  string    // what it was waiting for then
	// part is the first that was known, at that time; negative: none yet.
	part float64
	at   time.Time
}

func newProgress(w io.Writer, quiet bool) *progress {
	p := &progress{w: w, quiet: quiet, began: time.Now(), part: -1}
	if isTerminal(w) && !quiet {
		p.bar = newBar(asIs(w))
	}
	return p
}

// newBar draws nothing but the bar itself: the rest is in its description.
func newBar(w io.Writer) *progressbar.ProgressBar {
	return progressbar.NewOptions(permille,
		progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(24), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}

// report takes the news of a step.
func (p *progress) report(b admin.Backfill) {
	if p.quiet {
		return
	}
	if !p.seen {
		p.rows, p.seen = b.Rows, true
	}
	if b.Rows == p.rows {
		p.began = time.Now() // What it waited for before its first rows is no rate.
	}
	if p.part < 0 {
		p.part, p.at = b.Part, time.Now()
	}
	text := p.text(b)
	if p.bar != nil {
		p.bar.Describe(escaped(text))
		_ = p.bar.Set(int(math.Max(b.Part, 0) * (permille - 1)))
		return
	}
	if now := time.Now(); now.Sub(p.last) >= lineEvery || b.Waiting != "" && b.Waiting != p.said {
		p.last, p.said = now, b.Waiting
		fmt.Fprintf(p.w, "%s: %s\n", b.Observer, text)
	}
}

// text is "120000 rows, 300 events, 4000 rows/s, 45%, about 1m10s left".
func (p *progress) text(b admin.Backfill) string {
	took := time.Since(p.began)
	rate := float64(b.Rows-p.rows) / math.Max(took.Seconds(), 0.001)
	text := fmt.Sprintf("%d rows, %d events, %.0f rows/s", b.Rows, b.Events, rate)
	if b.Part >= 0 {
		text += fmt.Sprintf(", %.0f%%", 100*b.Part)
	}
	if gained := b.Part - p.part; p.part >= 0 && gained > 0 && b.Part < 1 {
		text += ", about " + span(time.Duration(float64(time.Since(p.at))*(1-b.Part)/gained)) + " left"
	}
	if b.Waiting != "" {
		text += " (" + b.Waiting + ")"
	}
	return text
}

// end leaves the line of the bar.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
