package delivery

import (
	"fmt"
	"slices"
	"testing"
)

// seen is an event that is in the log, or that a consumer has seen.
type seen struct {
	stream  string
	seq     int64
	id, key string
}

func byStream(e seen) string { return e.stream }
func byKey(e seen) string    { return e.stream + "/" + e.key }

// findings are what is wrong with what a consumer has seen, few of each kind.
type findings map[string]int

func (f findings) add(t *testing.T, what string, e seen) {
	if f[what]++; f[what] <= 5 {
		t.Logf("%s: %s %d, %s", what, e.stream, e.seq, e.id)
	}
}

// compare returns what differs where each event of the log is to be seen, those of one lane
// in their order when they are seen first, and how many were seen again.
func compare(t *testing.T, log, consumed []seen, lane func(seen) string) (wrong findings, repeats int) {
	wrong = make(findings)
	known := make(map[string]seen)
	for _, e := range log {
		known[e.id] = e
	}
	met, last := make(map[string]bool), make(map[string]int64)
	for _, e := range consumed {
		switch in, logged := known[e.id]; {
		case met[e.id]:
			repeats++
			continue
		case !logged:
			wrong.add(t, "not in the log", e)
		case in != e:
			wrong.add(t, "another one in the log", e)
			e = in
		case e.seq < last[lane(e)]:
			wrong.add(t, "behind a later one", e)
		}
		met[e.id], last[lane(e)] = true, max(last[lane(e)], e.seq)
	}
	return missing(t, wrong, log, met), repeats
}

// compareAdopted is compare for a log that went back, or was made anew, and whose streams
// were adopted when these earlier events were consumed; known are those that came again of these.
func compareAdopted(t *testing.T, log, earlier, consumed []seen, lane func(seen) string) (wrong findings, repeats, known int) {
	met, left := make(map[string]bool), make(map[string]int)
	for _, e := range earlier {
		met[e.id] = true
		left[e.stream]++
	}
	later := slices.DeleteFunc(slices.Clone(consumed), func(e seen) bool {
		left[e.stream]--
		return left[e.stream] >= 0
	})
	unknown := func(all []seen) []seen {
		return slices.DeleteFunc(slices.Clone(all), func(e seen) bool { return met[e.id] })
	}
	wrong, repeats = compare(t, unknown(log), unknown(later), lane)
	return wrong, repeats, len(later) - len(unknown(later))
}

func missing(t *testing.T, wrong findings, log []seen, met map[string]bool) findings {
	for _, e := range log {
		if !met[e.id] {
			wrong.add(t, "lost", e)
		}
	}
	return wrong
}

// TestCheckerKnowsWhatCameEarlier has a log that went back behind the second event, and is
// written anew.
func TestCheckerKnowsWhatCameEarlier(t *testing.T) {
	t.Parallel()
	log, earlier := batch(1, 2, 3, 4), batch(1, 2, 3, 4)
	earlier[2].id, earlier[3].id = "id 4", "gone" // The third of the log is the fourth now.
	consumed := slices.Concat(earlier, batch(3, 4, 3))
	wrong, repeats, known := compareAdopted(t, log, earlier, consumed, byStream)
	if len(wrong) > 0 || repeats != 1 || known != 1 {
		t.Errorf("%v, %d repeats, %d known, want nothing, 1 and 1", wrong, repeats, known)
	}
	if wrong, _, _ := compareAdopted(t, log, earlier, earlier, byStream); wrong["lost"] != 1 {
		t.Errorf("%v, want one that is lost", wrong)
	}
}

// batch are events of one stream with these sequences.
func batch(seqs ...int64) (events []seen) {
	for _, seq := range seqs {
		events = append(events, seen{"orders", seq, fmt.Sprint("id ", seq), fmt.Sprint(seq % 2)})
	}
	return events
}

// TestCheckerFinds shows that each thing that may go wrong is found.
func TestCheckerFinds(t *testing.T) {
	t.Parallel()
	other := batch(1, 2, 3)
	other[1].seq = 9
	for name, tt := range map[string]struct {
		consumed []seen
		lane     func(seen) string
		wrong    findings
		repeats  int
	}{
		"nothing where all is well":           {batch(1, 2, 3), byStream, findings{}, 0},
		"what is lost":                        {batch(1, 3), byStream, findings{"lost": 1}, 0},
		"what comes again":                    {batch(1, 2, 1, 2, 3), byStream, findings{}, 2},
		"what comes too late":                 {batch(2, 1, 3), byStream, findings{"behind a later one": 1}, 0},
		"no order between keys":               {batch(2, 1, 3), byKey, findings{}, 0},
		"what comes too late for its key":     {batch(3, 1, 2), byKey, findings{"behind a later one": 1}, 0},
		"what nobody knows":                   {batch(1, 2, 3, 4), byStream, findings{"not in the log": 1}, 0},
		"an event under another one's number": {other, byStream, findings{"another one in the log": 1}, 0},
	} {
		wrong, repeats := compare(t, batch(1, 2, 3), tt.consumed, tt.lane)
		if fmt.Sprint(wrong) != fmt.Sprint(tt.wrong) || repeats != tt.repeats {
			t.Errorf("it does not find %s, but %v and %d repeats", name, wrong, repeats)
		}
	}
}
