package mysql

import (
	"context"
	"net"

	"github.com/observerd/observerd/internal/source"
)

// dialed is where the dialer leaves the socket that it has opened, for the caller of a
// connection.
type dialed struct{ socket *source.Socket }

type dialedKey struct{}

// dialer opens connections of a source. The driver reads what is left of a result
// before it lets go of a connection, from a server that may be gone; a socket that is
// closed under it spares both sides that.
func dialer(sockets *source.Sockets) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{KeepAlive: keepAlive}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		socket, err := sockets.Add(conn)
		if err != nil {
			return nil, err
		}
		if d, ok := ctx.Value(dialedKey{}).(*dialed); ok {
			d.socket = socket
		}
		return socket, nil
	}
}
