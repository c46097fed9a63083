package config

import (
	"time"
	_ "time/tzdata" // So that zones are known on hosts and in images without them.
)

// Source is a database that is read and never written.
type Source struct {
	// URL is sqlite:PATH or postgres://… This or URLFile is required.
	URL URL `key:"url" shown:"this or url-file is required" unit:"URL"`
	// URLFile is a file that holds the URL, read when the configuration is
	// loaded. Default: none.
	URLFile string `key:"url-file" unit:"file name"`
	// Timezone is the IANA name of the zone of the source's timestamps that
	// have none of their own. Default: UTC.
	Timezone string `key:"timezone" default:"UTC" unit:"IANA time zone"`
	// PoolSize bounds the connections of this process. Default: 2.
	PoolSize int `key:"pool-size" default:"2" min:"2" max:"4" unit:"connections"`
	// QueryTimeout bounds one query, from its start to its last row.
	// Default: 5 minutes.
	QueryTimeout time.Duration `key:"query-timeout" default:"5m" min:"1s"`
}

// Location is the zone named by Timezone. It was checked by [Load]; of a
// Source made otherwise an unknown zone is UTC.
func (s Source) Location() *time.Location {
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}
