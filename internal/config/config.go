package config

import (
	"log/slog"
	"time"
)

// Config is the whole configuration. It prints, logs and marshals without its
// secrets.
type Config struct {
	Node      Node              `key:"node"`
	Cluster   Cluster           `key:"cluster"`
	Database  Database          `key:"database"`
	Scheduler Scheduler         `key:"scheduler"`
	Locks     Locks             `key:"locks"`
	Sources   map[string]Source `key:"sources"`
	// Observers and Sinks are in the order of the file.
	Observers []Observer `key:"observers"`
	Sinks     []Sink     `key:"sinks"`
	HTTP      HTTP       `key:"http"`
	Log       Log        `key:"log"`

	loaded time.Time
	files  []string
}

// Loaded is when [Load] read the configuration.
func (c *Config) Loaded() time.Time { return c.loaded }

// Files are the paths of the files of which [Load] made the configuration, those of
// folders too.
func (c *Config) Files() []string { return c.files }

// Node is this process among its equals.
type Node struct {
	// Name is a label for people, at most 100 characters; nothing depends on
	// its being unique. Default: the host's name.
	Name string `key:"name" shown:"the host's name" unit:"text"`
}

// Cluster is the nodes that share a coordination database.
type Cluster struct {
	// Name is a label for people, at most 100 characters; nothing depends on it. All nodes
	// should have the same. Default: none.
	Name string `key:"name" unit:"text"`
}

// HTTP is where the status page, the health checks and the metrics are served.
// Nothing that is asked there changes anything.
type HTTP struct {
	// Listen is the address, as host:port; no host means every interface,
	// port 0 a free one. Unless it is a loopback address or localhost, it
	// needs WebConfig with TLS and authentication, or Insecure. Empty switches
	// it off. Default: 127.0.0.1:8080.
	Listen string `key:"listen" default:"127.0.0.1:8080" unit:"host:port"`
	// WebConfig is a web configuration file, as Prometheus and its exporters
	// read it: TLS, users, client certificates. It holds for Listen and not
	// for Socket. Relative names in it start at its folder. It is read again
	// for each connection and request, so that certificates and users can be
	// replaced. Default: none, that is neither TLS nor authentication.
	WebConfig string `key:"web-config" unit:"file name"`
	// Insecure permits a Listen that other hosts can reach without TLS and
	// authentication. It is warned of wherever it has effect. Default: false.
	Insecure bool `key:"insecure" default:"false"`
	// ShowPayload adds their data, that is rows, to the events of /api/v1/events. It is
	// refused where Insecure lets other hosts in. Default: false.
	ShowPayload bool `key:"show-payload" default:"false"`
	// AllowedHosts are the names by which Listen may be asked, beside IP
	// addresses, localhost, the host of Listen and the host's own name. They
	// have no port; [Load] brings them to lower case. Default: none.
	AllowedHosts []string `key:"allowed-hosts" unit:"names"`
	// Socket is the path of a Unix socket that serves the same pages, and
	// /debug/pprof/, to this user and root alone. Missing folders are made.
	// Empty means that there is none. Default: none.
	Socket string `key:"socket" unit:"file name"`
}

// Log is what goes to stderr.
type Log struct {
	// Level is the least level that is written. Default: info.
	Level slog.Level `key:"level" default:"info" oneof:"debug|info|warn|error"`
	// Format is tint (coloured lines), json, or auto, which is tint on a
	// terminal and json elsewhere. Default: auto.
	Format string `key:"format" default:"auto" oneof:"auto|tint|json"`
	// Cycles is all, or quiet: then turns without events and errors are logged at debug, and
	// summed up each hour. Default: all.
	Cycles string `key:"cycles" default:"all" oneof:"all|quiet"`
}
