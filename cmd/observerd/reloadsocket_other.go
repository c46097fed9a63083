//go:build !linux

package main

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
)

// serveReloads passes on nothing: only Linux tells who is at the other end.
func serveReloads(context.Context, *atomic.Pointer[nodeProcess], chan<- reloadAsk) (stop func(), err error) {
	return func() {}, nil
}

var errNeedsLinux = errors.New("this needs Linux; send SIGHUP instead, and read the log of the node")

func runningNodes(context.Context) ([]nodeProcess, error) { return nil, errNeedsLinux }

func dialReload(context.Context, int) (net.Conn, int, error) { return nil, 0, errNeedsLinux }
