package sqlsink

// Settings are those of the configuration.
type Settings = settings
