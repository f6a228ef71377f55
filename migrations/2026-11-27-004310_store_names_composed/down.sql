-- Names stay: what stood around them is not known any more.
SELECT 1;
