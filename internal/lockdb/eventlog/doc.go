// Package eventlog is the event log of a cluster (obs_event), the offsets of its sinks
// (obs_sink_offset), and the watch over a log that went back to an earlier state, in a
// failover to a standby that lagged or in a restore. Events are appended by the fenced
// commit of package lockdb.
package eventlog
