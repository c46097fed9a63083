package config

// The types of sinks.
const (
	SinkStdout = "stdout"
	SinkFile   = "file"
)

// Sink is a receiver of every event.
type Sink struct {
	// ID names the sink; what it has stored is remembered under this name.
	// Letters a-z, digits and "-", at most 64. Required.
	ID string `key:"id" shown:"required" required:"true" unit:"name"`
	// Type is stdout or file. Required.
	Type string `key:"type" shown:"required" required:"true" oneof:"stdout|file"`
	// Path is the file, for type file only, to which events are appended as
	// JSON lines; a relative one starts at the working directory of the
	// process. Required for type file.
	Path string `key:"path" shown:"required for file" unit:"file name"`
	// BatchSize is how many events are handed over at once. Default: 500.
	BatchSize int `key:"batch-size" default:"500" min:"1" max:"10000" unit:"events"`
}
