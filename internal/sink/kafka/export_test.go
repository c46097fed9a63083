package kafka

import (
	"context"
	"net"
)

// Dial has the clients of the options use another way to the brokers.
func (o *Options) Dial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	o.dial = dial
}
