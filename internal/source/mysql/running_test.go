package mysql

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestSettleForgetsTheSleepBeforeAStatement(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(thread string, ago time.Duration, waking bool) running {
		return running{thread: thread, started: now.Add(-ago), waking: waking}
	}
	const short, long = 10 * time.Millisecond, time.Hour
	for name, test := range map[string]struct {
		seen  []running
		again [][]running
		want  []running
	}{
		"nothing wakes up":                {seen: []running{at("1", long, false)}, want: []running{at("1", long, false)}},
		"it has its text now":             {[]running{at("1", short, true)}, [][]running{{at("1", short, false)}}, []running{at("1", short, false)}},
		"its statement has ended":         {[]running{at("1", long, true)}, [][]running{nil}, nil},
		"its statement is a new one":      {[]running{at("1", long, true)}, [][]running{{at("1", -short, false)}}, nil},
		"another thread began then":       {[]running{at("1", short, true)}, [][]running{{at("2", short, false)}}, nil},
		"it wakes up for longer":          {[]running{at("1", long, true)}, [][]running{{at("1", long, true)}, {at("1", long, true)}, nil}, nil},
		"it slept for less than the slip": {[]running{at("1", time.Second, true)}, [][]running{{at("1", -short, false)}}, []running{at("1", -short, false)}},
		"it never wakes up":               {[]running{at("1", long, true)}, slices.Repeat([][]running{{at("1", long, true)}}, settleReads), []running{at("1", long, true)}},
		"an age that is no number":        {[]running{{thread: "1", waking: true}}, [][]running{{{thread: "1"}}}, []running{{thread: "1"}}},
	} {
		asked := 0
		got, err := settle(test.seen, func(n int) ([]running, error) {
			if n != asked || n >= len(test.again) {
				return nil, fmt.Errorf("read %d after %d", n, asked)
			}
			asked++
			return test.again[n], nil
		})
		if err != nil || !slices.Equal(got, test.want) || asked != len(test.again) {
			t.Errorf("%s: settle = %v, %v after %d reads, want %v after %d", name, got, err, asked, test.want, len(test.again))
		}
	}
}

func TestSettleFailsWithTheRead(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	_, err := settle([]running{{thread: "1", waking: true}}, func(int) ([]running, error) { return nil, gone })
	if !errors.Is(err, gone) {
		t.Errorf("settle = %v, want %v", err, gone)
	}
}

func TestMayWrite(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	old, young := running{thread: "1", started: now.Add(-time.Hour)}, running{thread: "1", started: now.Add(-margin)}
	reads, changes := transaction{thread: "1"}, transaction{thread: "1", writes: true}
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		seen     running
		open     []transaction
		again    []running     // what the second read of statements shows
		later    []transaction // likewise of transactions
		laterErr error
		reads    string
		counts   bool
		err      error
	}{
		"in a transaction that only reads":    {seen: old, open: []transaction{reads}},
		"in one that writes":                  {seen: old, open: []transaction{reads, changes}, counts: true},
		"young":                               {seen: young, counts: true},
		"still there":                         {seen: old, again: []running{old}, reads: "s", counts: true},
		"ended":                               {seen: old, reads: "st"},
		"ended, another thread writes":        {seen: old, later: []transaction{{thread: "2", writes: true}}, reads: "st"},
		"ended, and a report begun":           {seen: old, again: []running{{thread: "1", started: now}}, later: []transaction{reads}, reads: "st"},
		"ended, its transaction still open":   {seen: old, later: []transaction{changes}, reads: "st", counts: true},
		"ended, and one was left behind":      {seen: old, later: []transaction{{thread: noThread, writes: true}}, reads: "st", counts: true},
		"ended, transactions in memory only":  {seen: old, laterErr: errStale, reads: "st", counts: true},
		"ended, transactions hidden by now":   {seen: old, laterErr: errHidden, reads: "st", counts: true},
		"ended, and the connection is broken": {seen: old, laterErr: gone, reads: "st", err: gone},
	} {
		reads := ""
		got, err := mayWrite(processes{now: now, running: []running{test.seen}}, test.open,
			func() (processes, error) {
				reads += "s"
				return processes{now: now, running: test.again}, nil
			},
			func() ([]transaction, error) {
				reads += "t"
				return test.later, test.laterErr
			})
		if !errors.Is(err, test.err) || reads != test.reads || (len(got) == 1 && got[0] == test.seen) != test.counts {
			t.Errorf("%s: mayWrite = %v, %v after reads %q, want it counted: %t, after %q", name, got, err, reads, test.counts, test.reads)
		}
	}
}

func TestMayWriteFailsWithTheRead(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	_, err := mayWrite(processes{now: time.Now(), running: []running{{thread: "1"}}}, nil,
		func() (processes, error) { return processes{}, gone }, nil)
	if !errors.Is(err, gone) {
		t.Errorf("mayWrite = %v, want %v", err, gone)
	}
}
