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
			c.Reject(key, quote(o.Start)+" is not a start; use beginning, now, or a timestamp such as 2026-11-01T00:00:00Z")
			return
		}
		if at.After(time.Now()) {
			c.Warn(key, fmt.Sprintf("the start is in the future; rows with a timestamp before %s are never read", o.Start))
		}
	}
	switch {
	case !c.IsSet(path + ".timestamp"):
		c.Reject(key, "start needs a timestamp; set timestamp, or remove start")
	case o.Detect == DetectSnapshot && c.OK(path+".detect"):
		c.Reject(key, "detect: snapshot reads every row in every poll, so it has no start; remove start, or set detect: change")
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
		c.Reject(at, quote(o.ReconcileAt)+` is not a time of day; use HH:MM in the source's time zone, such as "03:30"`)
		return
	}
	switch {
	case !c.IsSet(path + ".timestamp"):
		c.warnUnused(path, "without a timestamp, where every poll reads all rows", "reconcile-at", "reconcile-window")
	case o.Detect == DetectSnapshot && c.OK(path+".detect"):
		c.warnUnused(path, "with detect: snapshot, which reads all rows in every poll", "reconcile-at", "reconcile-window")
	case o.ReconcileWindow != 0 && o.ReconcileWindow < time.Hour && c.OK(window):
		c.Warn(window, "a window of less than an hour is too short; use for example 720h, or 0 for everything")
	}
}

// checkTimes checks when the observer is polled, against its type.
func (c observerChecker) checkTimes(path string, o *Observer, s Scheduler) {
	typ, ofType := s.Types[o.Type], "scheduler."+o.Type+"-observer"
	if !c.OK(path+".type", "scheduler.observer.fixed-delay", ofType+".fixed-delay") {
		return
	}
	if delay := path + ".fixed-delay"; c.IsSet(delay) && c.OK(delay) {
		c.checkMultiple(delay, o, typ.FixedDelay)
	}
	window := path + ".not-between"
	if !c.IsSet(window) || !c.OK(window) {
		return
	}
	own, why := parseWindow(o.NotBetween)
	if why != "" {
		c.Reject(window, why)
		return
	}
	if own == nil || !c.OK("scheduler.observer.not-between", ofType+".not-between") {
		return
	}
	// The type's turns go on within the window of an observer; one has to lie outside.
	if open := longestOpen(own, mustWindow(typ.NotBetween)); open < typ.FixedDelay {
		c.Reject(window, fmt.Sprintf("no turn of the type %s may ever lie outside of %s: at most %s of a day are left, and its fixed-delay is %s; "+
			"use a shorter window, or a shorter fixed-delay for the type and this one for the observer",
			o.Type, quote(o.NotBetween), short(open), short(typ.FixedDelay)))
	}
}

// checkMultiple accepts a multiple of the type's delay: its turns are the only ones.
func (c observerChecker) checkMultiple(key string, o *Observer, beat time.Duration) {
	below := o.FixedDelay.Truncate(beat)
	if o.FixedDelay == below {
		return
	}
	nearest := short(below + beat)
	if below > 0 {
		nearest = short(below) + " or " + nearest
	}
	c.Reject(key, fmt.Sprintf("%s is not a multiple of the fixed-delay of the type %s, %s; use %s", short(o.FixedDelay), o.Type, short(beat), nearest))
}
