package promtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Dashboard is a dashboard of Grafana, as far as ours make use of its form: a
// field that is not listed here is an error, as Grafana ignores what it does
// not know and shows something else than was meant.
type Dashboard struct {
	// File is the name of the file, without its folder.
	File string `json:"-"`

	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Description   string   `json:"description"`
	Tags          []string `json:"tags"`
	Editable      bool     `json:"editable"`
	GraphTooltip  int      `json:"graphTooltip"`
	SchemaVersion int      `json:"schemaVersion"`
	Version       int      `json:"version"`
	Refresh       string   `json:"refresh"`
	Timezone      string   `json:"timezone"`
	Time          struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"time"`
	Links       []Link `json:"links"`
	Annotations struct {
		List []Annotation `json:"list"`
	} `json:"annotations"`
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
	Panels []Panel `json:"panels"`
}

// Datasource names where data come from.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Link leads to the dashboards that carry its tags.
type Link struct {
	Type        string   `json:"type"`
	Tags        []string `json:"tags"`
	Title       string   `json:"title"`
	Tooltip     string   `json:"tooltip"`
	Icon        string   `json:"icon"`
	URL         string   `json:"url"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	TargetBlank bool     `json:"targetBlank"`
}

// Annotation marks points in time in all graphs.
type Annotation struct {
	Name       string     `json:"name"`
	Enable     bool       `json:"enable"`
	IconColor  string     `json:"iconColor"`
	Datasource Datasource `json:"datasource"`
	Target     struct {
		Expr     string `json:"expr"`
		Interval string `json:"interval"`
		RefID    string `json:"refId"`
	} `json:"target"`
	TitleFormat string `json:"titleFormat"`
	TextFormat  string `json:"textFormat"`
	TagKeys     string `json:"tagKeys"`
}

// Variable is what a person chooses at the top of the dashboard.
type Variable struct {
	Name        string          `json:"name"`
	Label       string          `json:"label"`
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Datasource  Datasource      `json:"datasource"`
	Definition  string          `json:"definition"`
	Query       json.RawMessage `json:"query"`
	Current     json.RawMessage `json:"current"`
	Refresh     int             `json:"refresh"`
	Sort        int             `json:"sort"`
	IncludeAll  bool            `json:"includeAll"`
	Multi       bool            `json:"multi"`
	AllValue    string          `json:"allValue"`
}

// Panel is a graph, a figure or a table.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description"`
	GridPos         GridPos          `json:"gridPos"`
	Datasource      Datasource       `json:"datasource"`
	Interval        string           `json:"interval"`
	Targets         []Target         `json:"targets"`
	Transformations []Transformation `json:"transformations"`
	FieldConfig     FieldConfig      `json:"fieldConfig"`
	// Options differ from one type of panel to the other.
	Options map[string]any `json:"options"`
}

// GridPos is where a panel lies, on a grid that is 24 wide.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is a query of a panel.
type Target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	EditorMode   string `json:"editorMode"`
	LegendFormat string `json:"legendFormat"`
	Format       string `json:"format"`
	Instant      bool   `json:"instant"`
	Range        bool   `json:"range"`
}

// Transformation changes what the queries of a panel have answered.
type Transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}

// FieldConfig says how values are shown.
type FieldConfig struct {
	Defaults  Field `json:"defaults"`
	Overrides []struct {
		Matcher struct {
			ID      string `json:"id"`
			Options string `json:"options"`
		} `json:"matcher"`
		Properties []struct {
			ID    string `json:"id"`
			Value any    `json:"value"`
		} `json:"properties"`
	} `json:"overrides"`
}

// Field says how a value is shown.
type Field struct {
	Unit     string   `json:"unit"`
	Decimals *int     `json:"decimals"`
	Min      *float64 `json:"min"`
	Max      *float64 `json:"max"`
	NoValue  string   `json:"noValue"`
	Color    struct {
		Mode string `json:"mode"`
	} `json:"color"`
	Thresholds *Thresholds    `json:"thresholds"`
	Mappings   []any          `json:"mappings"`
	Custom     map[string]any `json:"custom"`
}

// Thresholds are the values from which on a colour holds.
type Thresholds struct {
	Mode  string `json:"mode"`
	Steps []struct {
		Color string   `json:"color"`
		Value *float64 `json:"value"`
	} `json:"steps"`
}

// ReadDashboard reads a dashboard, and refuses what is not JSON in the form that
// Grafana exports, with two spaces: another one makes unreadable differences.
func ReadDashboard(path string) (Dashboard, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Dashboard{}, fmt.Errorf("read a dashboard: %w", err)
	}
	d, err := parseDashboard(text)
	if err != nil {
		return Dashboard{}, fmt.Errorf("read the dashboard %s: %w", path, err)
	}
	d.File = filepath.Base(path)
	return d, nil
}

func parseDashboard(text []byte) (d Dashboard, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return d, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return d, errors.New("something follows the dashboard")
	}
	var formatted bytes.Buffer
	if err := json.Indent(&formatted, bytes.TrimSpace(text), "", "  "); err != nil {
		return d, err
	}
	formatted.WriteByte('\n')
	if !bytes.Equal(formatted.Bytes(), text) {
		return d, errors.New("it is not formatted as `jq .` does; run it through that")
	}
	return d, nil
}
