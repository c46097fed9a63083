package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/status"
)

// looked reports the parts that could not be examined: once for each reason, as one
// missing right may hide several.
func looked(x *input, f *findings) {
	parts := map[string][]string{}
	var reasons []string
	for _, b := range x.Blind {
		if parts[b.Reason] == nil {
			reasons = append(reasons, b.Reason)
		}
		parts[b.Reason] = append(parts[b.Reason], b.Part)
	}
	const why = "A node may fail at the same place, and what is wrong there stays hidden. But for rights, nothing else is judged."
	do := "Grant the role what it lacks, end the session that has locked a table (pg_blocking_pids), or fix what the message says; then run doctor again."
	if x.Backend == "sqlite" { // A file has no role; in a healthy file every part can be read.
		do = "Fix what the message says; if the file is damaged, move it away and bring back a backup. Then run doctor again."
	}
	for _, reason := range reasons {
		f.add(Problem, fmt.Sprintf("%s could not be read: %s", strings.Join(parts[reason], ", "), reason), why, do)
	}
	f.fine("everything in the coordination database was readable")
}

// leastPostgres is the first version with all that nodes use.
const leastPostgres = 120000

func server(x *input, f *findings) {
	s := x.Server
	if s.Standby {
		f.add(Problem, "the server is a standby, which follows another one", "It cannot be written, and commits appear there late: a node waits until it is promoted.",
			"Name the primary in database.url, or promote this server.")
	}
	if len(s.AnyOf) > 0 {
		f.add(Warning, "target_session_attrs=any lets each connection go to any of "+strings.Join(s.AnyOf, ", "),
			"When the first refuses one connection, that connection goes to the next host, which may be a standby: writes fail there, and what is read is older than what the other connections have committed.",
			"Leave target_session_attrs out of database.url: then each connection goes to the primary.")
	}
	if s.Settings["default_transaction_read_only"] == "on" {
		f.add(Problem, "default_transaction_read_only is on for this role and database", "Nodes cannot write.",
			"ALTER ROLE … or ALTER DATABASE … SET default_transaction_read_only = off.")
	}
	if level := s.Settings["default_transaction_isolation"]; level != "" && level != "read committed" && !s.Pooling.Shared() {
		f.add(Note, "default_transaction_isolation is "+level, "Nodes set read committed for their own sessions; whatever else works with this role gets the other.", "")
	}
	if idle := s.Settings["idle_session_timeout"]; idle != "" && idle != "0" {
		f.add(Warning, "a session of the role is ended when it was idle for "+idle+" ms (idle_session_timeout)", "A node takes each of these for an outage of the database.",
			fmt.Sprintf("ALTER ROLE %s SET idle_session_timeout = 0", x.Role.Name))
	}
	if s.Number > 0 && s.Number < leastPostgres {
		f.add(Problem, "PostgreSQL "+s.Version+" is older than 12", "Nodes set plan_cache_mode, which it does not know.", "Upgrade the server.")
	}
	number, _, _ := strings.Cut(s.Version, " ") // Without what the packager has added.
	f.fine("PostgreSQL %s, a primary that can be written", number)
}

func library(x *input, f *findings) {
	if mode := x.Server.Settings["journal_mode"]; mode != "wal" {
		f.add(Note, "the journal mode of the file is "+mode, "With it a writer and the readers wait for each other.",
			"Nothing: a node sets it to WAL when it starts.")
	}
	if mode := x.Server.FileMode; mode&0o007 != 0 {
		f.add(Warning, fmt.Sprintf("every user of this host may open the file (mode %04o)", mode), "It holds row values and events. A new file gets mode 0640; one that was there keeps its own.",
			"chmod o= the file, and those beside it that end with -wal and -shm.")
	}
	f.fine("SQLite %s, built in; the file is on no network file system that is known", x.Server.Version)
}

func durability(x *input, f *findings) {
	s := x.Server.Settings
	if s["fsync"] == "off" {
		f.add(Problem, "fsync is off", "After a crash of the host the database may be broken, or lack commits that were answered: "+
			"events are then lost or made twice.", "Set fsync = on and restart the server.")
	}
	if s["full_page_writes"] == "off" {
		f.add(Problem, "full_page_writes is off", "A page that is torn by a crash cannot be fixed.", "Set full_page_writes = on.")
	}
	if s["synchronous_commit"] == "off" {
		f.add(Problem, "synchronous_commit is off for this role and database",
			"A crash of the server takes back the commits of the last moments, after sinks may have stored their events.",
			"Set synchronous_commit = on; ALTER ROLE … SET synchronous_commit = on is enough.")
	}
	replicated(x, f)
	f.fine("a commit that was answered is kept: fsync, full_page_writes and synchronous_commit are on")
}

// replicated checks that a standby which replaces the server has each commit that was
// answered.
func replicated(x *input, f *findings) {
	s := x.Server
	const lost, do = "A failover to it takes back the commits that it has not received: cursors, turns and the event log go back, after sinks may have stored their events.",
		"docs/operations.md, High availability, says what to set, and what readers of the events must do otherwise."
	var why string
	switch {
	case s.Settings["synchronous_standby_names"] == "":
		why = "synchronous_standby_names is empty"
	case s.Settings["synchronous_commit"] == "local":
		why = "synchronous_commit is local for this role and database"
	case s.Standbys+s.Unseen == 0 && !s.Standby && s.Settings["synchronous_commit"] != "off":
		f.add(Problem, "synchronous_standby_names is set, and no standby streams from this server", "Each commit waits for one: nothing is polled or delivered.",
			"Bring the standby back, or take it out of synchronous_standby_names and reload the server.")
		return
	default:
		return
	}
	switch {
	case s.Standbys > 0:
		f.add(Warning, status.Plural(s.Standbys, "standby streams", "standbys stream")+" from this server, and "+why, lost, do)
	case s.Unseen > 0:
		f.add(Note, status.Plural(s.Unseen, "session for replication is", "sessions for replication are")+" open on this server, and "+why+
			"; whether a standby is behind, the role "+x.Role.Name+" may not see", "If there is one: "+lost, "GRANT pg_read_all_stats to the role to let doctor see. "+do)
	}
}

func pooler(x *input, f *findings) {
	switch x.Server.Pooling {
	case status.PooledUnprepared:
		f.add(Problem, "a connection pooler in transaction mode is between, and mixes up the prepared statements of its clients",
			"A node refuses to start.",
			"Use PgBouncer 1.21 or newer with max_prepared_statements above 0, a pool in session mode, or connect to the server itself.")
	case status.PooledTransactions:
		f.add(Warning, "a connection pooler in transaction mode is between",
			"Whether another node is alive cannot be told, so that a dead one is waited for until its TTL; and nodes set no time limits for their sessions.",
			"Connect to the server itself, or through a pool in session mode.")
		limits(x, f)
	case status.PooledSessions:
		f.fine("a connection pooler in session mode is between: each connection keeps a session of its own")
	default:
		f.fine("no connection pooler is between")
	}
}

// limits checks the settings of sessions that nodes cannot set through this pooler.
func limits(x *input, f *findings) {
	var none, do []string
	for _, limit := range []struct{ name, value string }{
		{"statement_timeout", "30s"}, {"lock_timeout", "5s"}, {"idle_in_transaction_session_timeout", "10s"},
	} {
		if x.Server.Settings[limit.name] == "0" {
			none = append(none, limit.name)
			do = append(do, fmt.Sprintf("ALTER ROLE %s SET %s = '%s'", x.Role.Name, limit.name, limit.value))
		}
	}
	const reconnect = "; then RECONNECT on the console of the pooler."
	if len(none) > 0 {
		f.add(Problem, "a session of the role has no "+strings.Join(none, ", no "),
			"Through this pooler nodes cannot set it. What a node that was cut off has left on the server may keep rows locked for hours.",
			strings.Join(do, "; ")+reconnect)
	}
	if level := x.Server.Settings["default_transaction_isolation"]; level != "" && level != "read committed" {
		f.add(Problem, "a session of the role has the isolation "+level, "The statements of nodes are written for read committed, and through this pooler they cannot set it.",
			fmt.Sprintf("ALTER ROLE %s SET default_transaction_isolation = 'read committed'", x.Role.Name)+reconnect)
	}
}

func rights(x *input, f *findings) {
	if slices.ContainsFunc(x.Blind, func(b status.Blind) bool { return b.Part == status.PartRole }) {
		return
	}
	r := x.Role
	lacks := r.Missing
	if x.want.AutoMigrate {
		lacks = slices.Concat(lacks, r.ToMigrate)
	}
	if len(lacks) > 0 {
		f.add(Problem, fmt.Sprintf("the role %s lacks %s", r.Name, strings.Join(lacks, ", ")), "A node with this role fails where it needs them.",
			"GRANT them; docs/migration-from-spring.md has the statements.")
	}
	if len(r.Excess) > 0 {
		f.add(Warning, fmt.Sprintf("the role %s has %s", r.Name, strings.Join(r.Excess, ", ")),
			"No node needs that. Who gets hold of its password can do more than to read and write these tables.",
			"Give the nodes a role of their own, with rights on these tables alone.")
	}
	if r.Name != "" {
		f.fine("the role has the rights that a node needs, and no attribute beyond them")
	}
}

func schema(x *input, f *findings) {
	s := x.Schema
	do := "Run 'observerd migrate up'; database.auto-migrate is false."
	switch {
	case len(x.Role.ToMigrate) > 0:
		do = "Run 'observerd migrate up' with a role that has " + strings.Join(x.Role.ToMigrate, ", ") + "."
	case x.want.AutoMigrate:
		do = "Nothing: the next node that starts migrates. 'observerd migrate up' does it now."
	}
	switch {
	case s.Target == 0:
	case s.Current == 0:
		f.add(Note, "no node of observerd has used this database yet: its tables do not exist", "", do)
	case s.Current < s.Target:
		f.add(Warning, fmt.Sprintf("the schema has version %d, this binary knows %d", s.Current, s.Target), "A node of this version is not ready before the migration.", do)
	case s.Current > s.Target:
		f.add(Problem, fmt.Sprintf("the schema has version %d, this binary knows no more than %d", s.Current, s.Target),
			"A node of this version refuses to start.", "Install the version that migrated it, or a later one.")
	default:
		f.fine("the schema has version %d, that of this binary", s.Current)
	}
}

// tolerable is the skew of a clock that is not reported: on a busy host, rows seem that
// old without any.
const tolerable = 2 * time.Second

// clock checks the clock of this host. Nodes of observerd do not depend on it, but Java
// nodes on this host do.
func clock(x *input, f *findings) {
	c := x.Clock
	skew := c.Ahead.Abs() - c.Within
	if skew <= tolerable {
		f.fine("the clocks of this host and of the database agree to within %s", tolerable)
		return
	}
	saw := fmt.Sprintf("this host's clock is %s the database's (± %s)", direction(c.Ahead), c.Within.Round(time.Millisecond))
	why := "Nodes of observerd use the database's clock for everything, so they are not affected. Java nodes lock by their host's clock: one that is ahead keeps its locks too long when it dies, one that is behind loses them while it works."
	do := "Synchronize both clocks (NTP)."
	if likeZone(c.Ahead) {
		do = "If it is a time zone, one of the two hosts has its clock set to local time. " + do
	}
	severity := Warning
	if skew > x.want.TTL/2 {
		severity = Problem
	}
	f.add(severity, saw, why, do)
}
