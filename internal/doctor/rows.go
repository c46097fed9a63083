package doctor

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/status"
)

const (
	zoneCause = "A whole or half number of hours is a time zone. Spring Integration up to 5.5 writes the local time of its JVM: start it with -Duser.timezone=UTC, or upgrade. " +
		"6.1.8 to 6.5.8 (from 6.2.4 in 6.2) and 7.0.0 to 7.0.4 write a time that is an hour ahead, in the hour in which summer time begins in the zone of the JVM: start them with -Duser.timezone=UTC, or upgrade to 7.0.5 or later."
	clockCause = "Synchronize the clock of the Java node's host (NTP)."
)

// likeZone reports whether a clock is off by so much that it may be a time zone.
func likeZone(off time.Duration) bool {
	return off.Abs() > 25*time.Minute && off.Abs() < 15*time.Hour
}

// causeOf says what to do about a Java node whose times are off.
func causeOf(off time.Duration) string {
	if likeZone(off) {
		return zoneCause + " Otherwise: " + clockCause
	}
	return clockCause
}

// future finds rows that were written by a clock ahead of the database's.
func future(x *input, f *findings) {
	for _, s := range x.worst(func(s status.Sighting) time.Duration { return s.Created.Sub(s.First) }) {
		if ahead := s.Created.Sub(s.First); ahead > tolerable {
			x.ahead(f, s, ahead)
		}
	}
	for _, s := range x.worst(func(s status.Sighting) time.Duration { return s.Expires.Sub(s.First) }) {
		if s.Created.Sub(s.First) > tolerable {
			continue // Its clock is reported already.
		}
		if left := s.Expires.Sub(s.First); !s.Ours && left > max(5*time.Minute, 3*x.ttlOf(s)) {
			x.farAway(f, s, left)
		}
	}
	for _, m := range x.Members {
		if ahead := m.SeenAt.Sub(x.At); ahead > tolerable {
			f.add(Problem, fmt.Sprintf("node %s was last seen in %s", m.Name, words(ahead)), clockWentBack, findTheJump)
		}
	}
	f.fine("no row of INT_LOCK lies in the future of the database's clock")
}

const (
	clockWentBack = "Only the database's clock makes this time: that clock has gone back, or another server has taken over with an earlier one."
	findTheJump   = "Find out why the clock of the database's host jumped, or which server took over."
)

func (x *input) ahead(f *findings, s status.Sighting, ahead time.Duration) {
	saw := fmt.Sprintf("%s: CREATED_DATE is %s the database's clock", x.lock(s), direction(ahead))
	if s.Ours {
		why := clockWentBack + " The next node that requests the lock sets its time to now: if the holder is dead and its death was not detected, its lease ends a TTL later."
		f.add(Problem, saw+", though a node of observerd wrote it ("+s.Node+")", why, findTheJump)
		return
	}
	why := fmt.Sprintf("The clock of holder %s is ahead. If it dies, its lock remains %s longer than the TTL, and nothing is polled under it until then.", s.Term, words(ahead))
	if x.Table.Has(expiredAfter) {
		why = fmt.Sprintf("The clock of holder %s was ahead when it made the row. What it writes to EXPIRED_AFTER is as far ahead: if it dies, its lock remains longer by as much.", s.Term)
	}
	severity := Warning
	if ahead > x.ttlOf(s)/2 {
		severity = Problem
	}
	f.add(severity, saw, why, causeOf(ahead)+" If the holder is dead, remove the row: "+removal(s))
}

func (x *input) farAway(f *findings, s status.Sighting, left time.Duration) {
	do := "Which TTL does that node ask for (JdbcLockRegistry, expireAfter)? "
	if likeZone(left - x.ttlOf(s)) {
		do += zoneCause + " "
	}
	f.add(Problem, fmt.Sprintf("%s: EXPIRED_AFTER is %s away; the TTL here is %s", x.lock(s), words(left), words(x.ttlOf(s))),
		fmt.Sprintf("Should holder %s die, nobody gets the lock before.", s.Term), do+"If the holder is dead, remove the row: "+removal(s))
}

func removal(s status.Sighting) string {
	return fmt.Sprintf("DELETE FROM INT_LOCK WHERE LOCK_KEY = '%s' AND REGION = '%s' AND CLIENT_ID = '%s'.", s.Key, s.Region, s.Term)
}

// past finds rows that had expired, or nearly, when they were written: by a clock that
// is behind.
func past(x *input, f *findings) {
	written := 0
	reported := map[string]bool{}
	for _, s := range x.Sightings {
		switch {
		case s.Ours:
		case !s.Written:
			x.stale(f, s)
		default:
			written++
			if behind := x.behind(s); behind > tolerable && !reported[s.Key+s.Region] {
				reported[s.Key+s.Region] = true
				x.lagging(f, s, behind)
			}
		}
	}
	if written > 0 {
		f.fine("the clocks of foreign holders are right: %d writes were seen %s, none of them more than %s off", written, x.watched(), tolerable)
		return
	}
	f.fine("no foreign holder was seen to write a row that is too old (%s)", x.watched())
}

// behind returns how far the clock of the writer is behind, at least: the row may have
// been there for the time between two looks.
func (x *input) behind(s status.Sighting) time.Duration {
	age := s.First.Sub(s.Created) - s.Gap
	if !x.Table.Has(expiredAfter) || s.Inserted {
		return age
	}
	// Spring 7 leaves CREATED_DATE as it is when it renews or takes over.
	return s.First.Sub(s.Expires) - s.Gap
}

func (x *input) lagging(f *findings, s status.Sighting, behind time.Duration) {
	why := "To everybody else this lock is older than it is, and free that much too early: another node may poll while this one does."
	severity := Warning
	if behind >= x.ttlOf(s) {
		why = "To everybody else this lock has expired before it was taken: it excludes nobody. Another node may poll while this one does."
		severity = Problem
	}
	f.add(severity, fmt.Sprintf("%s: holder %s has just written a time that is %s ago", x.lock(s), s.Term, words(behind)), why, causeOf(behind))
}

// stale reports a row that was not written for long. That is no defect by itself:
// Spring leaves the rows of dead nodes in the table.
func (x *input) stale(f *findings, s status.Sighting) {
	age := s.First.Sub(s.Created)
	if !s.Expires.IsZero() {
		age = s.First.Sub(s.Expires)
	}
	if age <= x.ttlOf(s)+time.Minute {
		return
	}
	why, do := "Its holder is dead, or does not renew it. Anyone who wants the lock takes it.", ""
	if likeZone(age) {
		why = "Its holder is dead; or it is alive and its clock is behind, perhaps by a time zone. Then the lock excludes nobody."
		do = "Watch for longer than the interval of the Java nodes, with --watch 1m: what is written meanwhile tells the two apart."
	}
	f.add(Note, fmt.Sprintf("%s: the row of holder %s is %s old", x.lock(s), s.Term, words(age)), why, do)
}

// worst returns the sighting of each lock and holder for which the measure is
// the greatest.
func (x *input) worst(measure func(status.Sighting) time.Duration) []status.Sighting {
	type holder struct{ key, region, term string }
	at := map[holder]int{}
	var all []status.Sighting
	for _, s := range x.Sightings {
		h := holder{s.Key, s.Region, s.Term}
		if i, ok := at[h]; !ok {
			at[h] = len(all)
			all = append(all, s)
		} else if measure(s) > measure(all[i]) {
			all[i] = s
		}
	}
	return all
}
