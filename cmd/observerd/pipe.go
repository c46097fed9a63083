package main

import (
	"context"
	"errors"
	"io"
	"syscall"
)

// errPipeClosed is why a node stops whose stdout has lost its reader, as in
// 'observerd run | head'.
var errPipeClosed = errors.New("stdout was closed by its reader")

// watchPipe returns a writer to w, and a context that ends with
// [errPipeClosed] when a write finds no reader any more.
func watchPipe(ctx context.Context, w io.Writer) (context.Context, io.Writer) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, pipeWriter{w, cancel}
}

type pipeWriter struct {
	io.Writer
	closed context.CancelCauseFunc
}

// Write implements [io.Writer].
func (p pipeWriter) Write(text []byte) (int, error) {
	n, err := p.Writer.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		p.closed(errPipeClosed)
	}
	return n, err
}
