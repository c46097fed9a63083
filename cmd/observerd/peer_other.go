//go:build !linux

package main

import "context"

// listener does not know; the node itself says.
func (p place) listener(context.Context) (pid int, known bool) { return 0, false }

// processBegan does not know.
func processBegan(int) (seconds float64, known bool) { return 0, false }
