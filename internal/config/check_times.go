package config

import (
	"fmt"
	"time"
)

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
			"write a shorter window, or a shorter fixed-delay for the type and this one for the observer",
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
	c.Reject(key, fmt.Sprintf("%s is no multiple of the fixed-delay of the type %s, %s; write %s", short(o.FixedDelay), o.Type, short(beat), nearest))
}
