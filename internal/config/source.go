package config

import (
	"time"
	_ "time/tzdata" // So that zones are known on hosts and in images without them.
)

// Source is a database that is read and never written.
type Source struct {
	// URL is sqlite:PATH, or postgres, oracle, mysql or mariadb://… This or
	// URLFile is required.
	URL URL `key:"url" shown:"this or url-file is required" unit:"URL"`
	// URLFile is a file that holds the URL, read when the configuration is
	// loaded, or by [Source.Resolve] later. Default: none.
	URLFile string `key:"url-file" unit:"file name"`
	// PasswordFile is a file that holds the password, any characters, read
	// as URLFile is. It replaces the one in the URL. Default: none.
	PasswordFile string `key:"password-file" unit:"file name"`
	// Timezone is the IANA name of the zone of the source's timestamps that
	// have none of their own. Default: UTC.
	Timezone string `key:"timezone" default:"UTC" unit:"IANA time zone"`
	// PoolSize bounds the connections of this process. Default: 2.
	PoolSize int `key:"pool-size" default:"2" min:"2" max:"4" unit:"connections"`
	// FetchSize is how many rows one round trip brings, where the database
	// sends them on request. Default: 1000.
	FetchSize int `key:"fetch-size" default:"1000" min:"1" max:"100000" unit:"rows"`
	// QueryTimeout bounds each small statement, and how long the database may
	// send nothing while rows are read. Default: 1 minute.
	QueryTimeout time.Duration `key:"query-timeout" default:"1m" min:"1s"`
	// resolve reads the files again of which one could not be read when the
	// configuration was loaded; nil: URL is whole.
	resolve func() (URL, error)
}

// IsWhole reports whether URL has all that the files of the source hold. Where it
// has not, it is none, or lacks the password: then [Source.Resolve] is to be
// called before a connection is made.
func (s Source) IsWhole() bool { return s.resolve == nil }

// Resolve returns the source with its whole URL. A file that could not be read when
// the configuration was loaded is read now. The error is an [*Error]: [ErrUnread]
// while there is still such a file, and a mistake when it holds no URL or password.
func (s Source) Resolve() (Source, error) {
	if s.IsWhole() {
		return s, nil
	}
	url, err := s.resolve()
	if err != nil {
		return s, err
	}
	s.URL, s.resolve = url, nil
	return s, nil
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
