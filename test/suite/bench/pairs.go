package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// pairsCommand compares two commits: `make bench-pairs`.
const pairsCommand = "pairs"

// measuredFigure is a figure for a program. A report has one a line.
type measuredFigure struct {
	Group, What string
	// Value is the first number of the figure, Text all of it.
	Value float64
	Text  string
}

// json writes the figures that have a number.
func (r report) json(w io.Writer) error {
	encoder := json.NewEncoder(w)
	for _, m := range r.measured {
		for _, f := range m.figures {
			for _, p := range f.value.parts {
				if n, ok := p.(number); ok {
					if err := encoder.Encode(measuredFigure{f.group, f.what, n.low, f.value.String()}); err != nil {
						return err
					}
					break
				}
			}
		}
	}
	return nil
}

// versus is a figure of two checkouts. A round runs the base, this checkout twice, and the
// base: what a checkout differs in from itself is noise.
type versus struct {
	group, what, base, now string
	ratios, noise          []float64
}

// verdict is silent about a change unless each round has seen it above the noise of all.
func (v versus) verdict() string {
	widest := 0.0
	for _, n := range v.noise {
		widest = max(widest, math.Abs(math.Log(n)))
	}
	switch {
	case math.Log(slices.Min(v.ratios)) > widest:
		return "higher"
	case math.Log(slices.Max(v.ratios)) < -widest:
		return "lower"
	}
	return "within the noise"
}

// pairs measures this checkout and that of a base in turns, and prints the ratios.
func pairs(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench pairs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	base := flags.String("base", "", "the `folder` of the other checkout, with bin/bench in it")
	rounds := flags.Int("rounds", 3, "how often each side is measured twice")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *base == "" || *rounds < 1 {
		return fmt.Errorf("-base %q and -rounds %d compare nothing: run `make bench-pairs BASE=COMMIT`", *base, *rounds)
	}
	var all []*versus
	for round := range *rounds {
		var runs [4][]measuredFigure
		for i, folder := range []string{*base, ".", ".", *base} {
			fmt.Fprintf(stderr, "bench pairs: round %d of %d, %s\n", round+1, *rounds, folder)
			var err error
			if runs[i], err = runOf(ctx, folder, flags.Args(), stderr); err != nil {
				return err
			}
		}
		all = paired(all, runs)
	}
	return printPairs(stdout, all)
}

// runOf measures in a checkout.
func runOf(ctx context.Context, folder string, args []string, stderr io.Writer) ([]measuredFigure, error) {
	program, err := filepath.Abs(filepath.Join(folder, "bin", "bench"))
	if err != nil {
		return nil, err
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append([]string{"-json"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &output, stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("measure in %s: %w", folder, err)
	}
	all, err := figuresOf(&output)
	if err != nil {
		return nil, fmt.Errorf("read the figures of %s: %w", folder, err)
	}
	return all, nil
}

// figuresOf reads what [report.json] has written.
func figuresOf(r io.Reader) (all []measuredFigure, err error) {
	for decoder := json.NewDecoder(r); decoder.More(); {
		var f measuredFigure
		if err := decoder.Decode(&f); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// paired adds a round: the base's figures, ours twice, and the base's. Figures that not all
// of them have are left out.
func paired(all []*versus, runs [4][]measuredFigure) []*versus {
	for _, now := range runs[1] {
		var found [4]measuredFigure
		missing := false
		for i, run := range runs {
			at := slices.IndexFunc(run, func(f measuredFigure) bool { return f.Group == now.Group && f.What == now.What && f.Value > 0 })
			if missing = missing || at < 0; !missing {
				found[i] = run[at]
			}
		}
		if missing {
			continue
		}
		at := slices.IndexFunc(all, func(v *versus) bool { return v.group == now.Group && v.what == now.What })
		if at < 0 {
			at, all = len(all), append(all, &versus{group: now.Group, what: now.What})
		}
		v := all[at]
		v.base, v.now = found[0].Text, now.Text
		v.ratios = append(v.ratios, (found[1].Value+found[2].Value)/(found[0].Value+found[3].Value))
		v.noise = append(v.noise, found[2].Value/found[1].Value, found[3].Value/found[0].Value)
	}
	return all
}

func printPairs(w io.Writer, all []*versus) error {
	if len(all) == 0 {
		return errors.New("the two checkouts have measured nothing in common")
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	group := ""
	for _, v := range all {
		if v.group != group {
			group = v.group
			fmt.Fprintf(table, "\n%s\tBASE\tNOW\tNOW / BASE\tNOISE\n", group)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%.2f (%.2f to %.2f)\t%.2f to %.2f\t%s\n", v.what, v.base, v.now,
			median(v.ratios), quantile(v.ratios, 0), quantile(v.ratios, 1), quantile(v.noise, 0), quantile(v.noise, 1), v.verdict())
	}
	return table.Flush()
}
