CREATE TABLE invoice (invoice_id INT PRIMARY KEY, customer_id INT NOT NULL, invoice_date {time} NOT NULL, total NUMERIC(10,2) NOT NULL);
CREATE TABLE track (track_id INT PRIMARY KEY, name VARCHAR(200) NOT NULL, milliseconds INT NOT NULL);
INSERT INTO invoice VALUES (1, 2, '2021-01-01', 1.98), (2, 4, '2021-01-02', 3.96);
INSERT INTO track VALUES (1, 'For Those About To Rock', 343719)
