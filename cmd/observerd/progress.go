package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/observerd/observerd/internal/admin"
)

// lineEvery is the time between two lines.
const lineEvery = 5 * time.Second

// progress shows how far a backfill is, in lines: what is done of the range, not of
// its rows, whose number is unknown.
type progress struct {
	w     io.Writer
	began time.Time
	rows  int64     // when it began
	seen  bool      // there was a report
	last  time.Time // of the last line
	said  string    // what it was waiting for then
	// part is the first that was known, at that time; negative: none yet.
	part float64
	at   time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, began: time.Now(), part: -1} }

// report takes the news of a step.
func (p *progress) report(b admin.Backfill) {
	if !p.seen {
		p.rows, p.seen = b.Rows, true
	}
	if b.Rows == p.rows {
		p.began = time.Now() // What it waited for before its first rows is no rate.
	}
	if p.part < 0 {
		p.part, p.at = b.Part, time.Now()
	}
	if now := time.Now(); now.Sub(p.last) >= lineEvery || b.Waiting != "" && b.Waiting != p.said {
		p.last, p.said = now, b.Waiting
		fmt.Fprintf(p.w, "%s: %s\n", b.Observer, p.text(b))
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
