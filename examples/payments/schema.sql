CREATE TABLE payment (
  order_id text        NOT NULL,
  event_id text        NOT NULL,
  amount   numeric     NOT NULL,
  receipt  text        NOT NULL,
  paid_at  timestamptz NOT NULL DEFAULT now()
);
