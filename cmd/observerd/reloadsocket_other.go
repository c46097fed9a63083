//go:build !linux

package main

import (
	"context"
	"errors"
	"net"
)

// serveReloads passes on nothing: only Linux tells who is at the other end.
func serveReloads(context.Context, chan<- chan<- reloadAnswer) (stop func(), err error) {
	return func() {}, nil
}

func dialReload(context.Context, int) (net.Conn, error) {
	return nil, errors.New("this needs Linux; send SIGHUP in its place, and look into the log of the node")
}
