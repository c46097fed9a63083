package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/config"
)

// exitStatus is what the service manager shows of a run that has ended: the first
// line of why, and what is to be done before it runs again.
func exitStatus(err error) string {
	if err == nil {
		return "Ended as asked"
	}
	code := exitCode(err)
	text := fmt.Sprintf("Ended with exit code %d: %s", code, summary(err))
	switch code {
	case exitConfiguration:
		return text + "; fix it, then start again"
	case exitDenied:
		return text + "; give the right, then start again"
	}
	return text
}

// summary is the first line of an error, and how many more there are.
func summary(err error) string {
	lines := strings.Split(err.Error(), "\n")
	var mistakes *config.Error
	if errors.As(err, &mistakes) {
		lines = each(mistakes.Problems, config.Problem.String)
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%s (and %d more in the log)", lines[0], len(lines)-1)
}
