package config

import (
	_ "embed"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/nearest"
)

// zoneNames are the zones of zone.tab in the IANA time zone database and UTC, one a line,
// each with a city of its own; package time does not list them.
//
//go:embed zones.txt
var zoneNames string

// nearestZone returns the zone that was probably meant, or "". The city decides: names
// of one region are alike to a large part.
func nearestZone(name string) string {
	zones := make(map[string]string)
	for zone := range strings.Lines(zoneNames) {
		zone = strings.TrimSpace(zone)
		zones[path.Base(zone)] = zone
	}
	city := nearest.Name(path.Base(name), slices.Sorted(maps.Keys(zones)))
	if len(name) < len("Paris") && !strings.EqualFold(city, name) { // MSK is not Asia/Omsk.
		return ""
	}
	return zones[city]
}
