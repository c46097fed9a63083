package main

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/observerd/observerd/internal/config"
)

func TestExitStatusSaysWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	mistakes := &config.Error{Problems: []config.Problem{
		{File: "config.yaml", Line: 3, Column: 5, Key: "sources", Text: "it is wrong; use something else"},
		{Origin: "OBSERVERD_X", Text: "so is this"},
	}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "Ended as asked"},
		{mistakes, "Ended with exit code 78: config.yaml:3:5: it is wrong; use something else (and 1 more in the log); fix it, then start again"},
		{fmt.Errorf("sink file: %w", fs.ErrPermission), "Ended with exit code 77: sink file: permission denied; give the right, then start again"},
		{errors.New("start: out of luck"), "Ended with exit code 1: start: out of luck"},
		{errors.Join(errors.New("one"), errors.New("two"), errors.New("three")), "Ended with exit code 1: one (and 2 more in the log)"},
	} {
		if got := exitStatus(c.err); got != c.want {
			t.Errorf("of %v it says\n%s, want\n%s", c.err, got, c.want)
		}
	}
}
