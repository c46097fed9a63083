package config

import (
	"fmt"
	"time"
)

// The words of `start` beside a timestamp.
const (
	StartBeginning = "beginning"
	StartNow       = "now"
)

// StartAt is what `start` says: now, or a timestamp; neither is the beginning
// of the source. It was checked by [Load].
func (o Observer) StartAt() (now bool, at time.Time) {
	if o.Start == StartNow {
		return true, time.Time{}
	}
	at, _ = time.Parse(time.RFC3339, o.Start)
	return false, at
}

// ReconcileDue is the last time, not after now, at which a reconcile was to
// begin. It reports false for an observer that has none.
func (o Observer) ReconcileDue(now time.Time, zone *time.Location) (time.Time, bool) {
	at, err := time.Parse(clockForm, o.ReconcileAt)
	if err != nil {
		return time.Time{}, false
	}
	now = now.In(zone)
	due := time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), 0, 0, zone)
	if due.After(now) {
		due = time.Date(now.Year(), now.Month(), now.Day()-1, at.Hour(), at.Minute(), 0, 0, zone)
	}
	return due, true
}

const clockForm = "15:04"

// checkStart checks the start, which needs a timestamp and a detection other than snapshot.
func (c observerChecker) checkStart(path string, o *Observer) {
	key := path + ".start"
	if !c.IsSet(key) || !c.OK(key) || o.Start == StartBeginning {
		return
	}
	if o.Start != StartNow {
		at, err := time.Parse(time.RFC3339, o.Start)
		if err != nil {
			c.Reject(key, quote(o.Start)+" is not a start; write beginning, now, or a timestamp such as 2026-11-01T00:00:00Z")
			return
		}
		if at.After(time.Now()) {
			c.Warn(key, fmt.Sprintf("the start is in the future; rows with a timestamp before %s are never read", o.Start))
		}
	}
	switch {
	case !c.IsSet(path + ".timestamp"):
		c.Reject(key, "start needs a timestamp; write timestamp, or remove start")
	case o.Detect == DetectSnapshot && c.OK(path+".detect"):
		c.Reject(key, "detect: snapshot reads every row in every poll, so it has no start; remove start, or write detect: change")
	}
}

// checkReconcile checks the time of day, and the keys that a reconcile needs.
func (c observerChecker) checkReconcile(path string, o *Observer) {
	at, window := path+".reconcile-at", path+".reconcile-window"
	if !c.IsSet(at) {
		c.warnUnused(path, "without reconcile-at", "reconcile-window")
		return
	}
	if _, err := time.Parse(clockForm, o.ReconcileAt); err != nil || len(o.ReconcileAt) != len(clockForm) {
		c.Reject(at, quote(o.ReconcileAt)+` is not a time of day; write HH:MM in the source's time zone, such as "03:30"`)
		return
	}
	switch {
	case !c.IsSet(path + ".timestamp"):
		c.warnUnused(path, "without a timestamp, where every poll reads all rows", "reconcile-at", "reconcile-window")
	case o.Detect == DetectSnapshot && c.OK(path+".detect"):
		c.warnUnused(path, "with detect: snapshot, which reads all rows in every poll", "reconcile-at", "reconcile-window")
	case o.ReconcileWindow != 0 && o.ReconcileWindow < time.Hour && c.OK(window):
		c.Warn(window, "a window of less than an hour finds almost nothing; write for example 720h, or 0 for everything")
	}
}
