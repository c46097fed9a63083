package springtest

import (
	"crypto/rand"
	"fmt"
	"time"
)

// Options describe a lock repository of an application.
type Options struct {
	// URL is that of the database, for pgx. Required.
	URL string
	// Generation is that of the library. Required.
	Generation Generation
	// TTL is the time-to-live that the application has configured; 0 means 10 s.
	TTL time.Duration
	// Region is that of the locks; empty means DEFAULT.
	Region string
	// ID is the client id; empty means a random UUID, as the library's.
	ID string
	// Zone is that of the JVM; nil means UTC.
	Zone *time.Location
	// Clock is the application's; nil means that of this host.
	Clock func() time.Time
	// Connections is the size of the application's pool; 0 means 2.
	Connections int
}

func (o *Options) setDefaults() {
	if o.TTL == 0 {
		o.TTL = 10 * time.Second
	}
	if o.Region == "" {
		o.Region = "DEFAULT"
	}
	if o.ID == "" {
		h := make([]byte, 16)
		_, _ = rand.Read(h) // It never fails.
		o.ID = fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:])
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Connections == 0 {
		o.Connections = 2
	}
}
