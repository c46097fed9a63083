package servertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// StartOnFreePort calls start with a port of 127.0.0.1 that is free, and with
// another one when somebody took the first between our look and the start.
func StartOnFreePort(ctx context.Context, start func(port int) error) error {
	var err error
	for range 10 {
		port, free := freePort(ctx)
		if free != nil {
			return free
		}
		err = start(port)
		if err == nil || portFree(ctx, port) {
			return err
		}
	}
	return err
}

// freePort picks a port below the range from which kernels serve outgoing
// connections. One from that range could be taken while the server is stopped.
func freePort(ctx context.Context) (int, error) {
	const lowest, count = 15000, 15000
	for range 100 {
		if port := lowest + rand.IntN(count); portFree(ctx, port) {
			return port, nil
		}
	}
	return 0, errors.New("no free TCP port on 127.0.0.1 between 15000 and 30000")
}

func portFree(ctx context.Context, port int) bool {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
