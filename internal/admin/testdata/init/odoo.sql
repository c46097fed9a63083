CREATE TABLE res_partner (id SERIAL PRIMARY KEY, name VARCHAR, create_date TIMESTAMP, write_date TIMESTAMP, date DATE);
CREATE TABLE sale_order (id SERIAL PRIMARY KEY, date_order TIMESTAMP NOT NULL, create_date TIMESTAMP DEFAULT now() NOT NULL, write_date TIMESTAMP NOT NULL);
CREATE TABLE mail_message (id SERIAL PRIMARY KEY, create_date TIMESTAMP DEFAULT (now() AT TIME ZONE 'utc') NOT NULL, write_date TIMESTAMP);
CREATE TABLE ir_logging (id SERIAL PRIMARY KEY, create_date TIMESTAMP DEFAULT (now() AT TIME ZONE 'utc') NOT NULL);
CREATE TABLE derived (id SERIAL PRIMARY KEY, at TIMESTAMP NOT NULL, modified TIMESTAMP GENERATED ALWAYS AS (at + '1 day'::interval) STORED);
INSERT INTO res_partner (name, create_date, write_date) VALUES ('Azure', '2024-05-01', '2024-05-02'), ('Deco', '2024-05-01', NULL);
INSERT INTO sale_order (date_order, write_date) VALUES ('2024-05-01', now() AT TIME ZONE 'utc');
INSERT INTO mail_message (write_date) SELECT NULL FROM generate_series(1, 1500);
INSERT INTO ir_logging SELECT FROM generate_series(1, 1500);
UPDATE pg_class SET reltuples = 200000, relpages = 2000 WHERE relname IN ('mail_message', 'ir_logging')
