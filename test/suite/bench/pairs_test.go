package main

import (
	"strings"
	"testing"
)

func TestPairsReadTheReport(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := report{measured: []measured{{figures: []figure{
		{group: "g", what: "rate", value: say("%s rows/s, %s of the loop", whole(66_494), decimal(0.5, 2))},
		{group: "g", what: "words", value: say("%s", words{"none"})},
	}}}}
	if err := r.json(&out); err != nil {
		t.Fatal(err)
	}
	all, err := figuresOf(strings.NewReader(out.String()))
	if want := (measuredFigure{"g", "rate", 66_494, "66,494 rows/s, 0.50 of the loop"}); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("%+v, %v; want %+v", all, err, want)
	}
	if _, err := figuresOf(strings.NewReader(`{"Group": 1}`)); err == nil {
		t.Error("what is no report is no error")
	}
}

func TestPairsJudgeAboveTheNoise(t *testing.T) {
	t.Parallel()
	run := func(fast, steady, noisy float64) []measuredFigure {
		return []measuredFigure{{"g", "fast", fast, "f"}, {"g", "steady", steady, "s"}, {"g", "noisy", noisy, "n"}, {"g", "zero", 0, "0"}}
	}
	var all []*versus
	for range 2 {
		all = paired(all, [4][]measuredFigure{run(100, 50, 10), run(50, 51, 20), run(52, 50, 9), run(99, 50, 9)})
	}
	all = paired(all, [4][]measuredFigure{run(100, 50, 10), run(50, 51, 20), nil, run(99, 50, 9)})
	if len(all) != 3 || len(all[0].ratios) != 2 || len(all[0].noise) != 4 {
		t.Fatalf("%d figures, first %+v", len(all), all[0])
	}
	for i, want := range []string{"lower", "within the noise", "within the noise"} {
		if got := all[i].verdict(); got != want {
			t.Errorf("%s: %s, want %s", all[i].what, got, want)
		}
	}
	var out strings.Builder
	if err := printPairs(&out, all); err != nil || !strings.Contains(out.String(), "0.51 (0.51 to 0.51)") {
		t.Errorf("%v\n%s", err, &out)
	}
	if printPairs(&out, nil) == nil {
		t.Error("nothing in common is no error")
	}
}
