package source

import "testing"

// TestPresentTime has defaults as the databases print them.
func TestPresentTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{
		"now()":                                      {true},
		"CURRENT_TIMESTAMP":                          {true},
		"CURRENT_TIMESTAMP(3)":                       {true},
		"current_timestamp(6)":                       {true},
		"('now'::text)::date":                        {true},
		"timezone('utc'::text, now())":               {true},
		"(now() AT TIME ZONE 'Europe/Berlin'::text)": {true},
		"(clock_timestamp())::timestamp(0) without time zone": {true},
		"CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE)":         {true},
		"SYSDATE":                               {true},
		"SYSTIMESTAMP":                          {true},
		"curdate()":                             {true},
		"datetime('now')":                       {true},
		"datetime('now', 'localtime')":          {true},
		"strftime('%Y-%m-%dT%H:%M:%fZ', 'now')": {true},
		"(CAST(strftime('%s','now') AS INTEGER) * 1000)": {true},
		"unixepoch()":                          {true},
		"":                                     {false, false},
		"NULL":                                 {false, false},
		"NULL::timestamp without time zone":    {false, false},
		"'0000-00-00 00:00:00'":                {false, true},
		"0000-00-00":                           {false, true},
		"'1900-01-01'::date":                   {false, true},
		"DATE '1900-01-01'":                    {false, true},
		"'infinity'::timestamp with time zone": {false, true},
		"(now() + '14 days'::interval)":        {false, true},
		"now() + interval 14 day":              {false, true},
		"SYSDATE + 14":                         {false, true},
		"SYSDATE+14":                           {false, true},
		"datetime('now', '+14 days')":          {false, true},
		"date('now', 'start of month')":        {false, true},
		"trunc(sysdate)":                       {false, true},
		"'tomorrow'::date":                     {false, true},
		"my_time()":                            {false, true},
	} {
		var c TimeColumn
		c.SetDefault(text)
		if (c.Default == Yes) != want[0] || c.OtherDefault != want[1] {
			t.Errorf("%s: the present time %s, another default %t", text, c.Default, c.OtherDefault)
		}
	}
}

func TestMeaningOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Meaning{
		"updated_at": Changed, "lastModifiedDate": Changed, "write_date": Changed, "LAST_UPD": Changed, "AENDAT": Changed, "AEDAT": Changed, "mtime": Changed,
		"tms": Changed, "last_edited": Changed, "SystemModstamp": Changed, "create_date": Created, "CREATED": Created, "ERDAT": Created, "datec": Created,
		"created_updated": Changed, "order_date": Unsaid, "mod": Changed, "model": Unsaid, "exchange_date": Unsaid,
		"reconciled_at": Business, "due_date": Business, "trial_ends_at": Business, "birth_date": Business, "next_update": Business, "updated_by": Business,
		"password_changed_at": Business, "date_valid": Business, "shipped_date": Business,
	} {
		if got := MeaningOf(name); got != want {
			t.Errorf("%s means %d, want %d", name, got, want)
		}
	}
}
