package springtest

import "time"

// javaTime is how pgjdbc writes a TIMESTAMP.
const javaTime = "2006-01-02 15:04:05.999999"

// stamp is an instant as the generation writes it. The clock is that of the
// application, never the database's.
func (r *Repository) stamp(t time.Time) param {
	switch r.options.Generation {
	case Spring5:
		// A java.util.Date, in the zone of the JVM.
		return param{t.In(r.options.Zone).Format(javaTime), unspecified}
	case Spring6:
		// Timestamp.valueOf reads UTC's wall clock as that of the JVM's zone, in
		// which some times do not exist.
		return param{throughZone(t.UTC(), r.options.Zone).Format(javaTime), unspecified}
	}
	return param{t.UTC().Format(javaTime), timestampOID}
}

// throughZone is the wall clock of t after a stay in another zone: where the
// zone's clocks skip an hour, Java moves what lies in it behind it.
func throughZone(t time.Time, zone *time.Location) time.Time {
	there := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
	_, before := there.Add(-12 * time.Hour).Zone()
	_, after := there.Add(12 * time.Hour).Zone()
	if gap := time.Duration(after-before) * time.Second; gap > 0 && there.Hour() != t.Hour() {
		return t.Add(gap)
	}
	return t
}
