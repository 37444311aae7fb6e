"""CSV and its relatives, as programs write them."""

import bz2
import gzip
import lzma

import pyarrow as pa

from support.real_files.case import RealFile, by_duckdb, by_pandas, sql, text

_PLAIN = "id,name\n1,Anna\n2,Björn\n"
_SEMICOLONS = "id;name;net\r\n1;Müller;1,5\r\n2;Sørensen;-0,25\r\n"
_NO_ZONE = "id,at\n1,2026-01-02T03:04:05.000000\n2,2026-07-02T03:04:05.250000\n"
_POSTGRES_TEXT = "1\tBjörn\tt\t2026-01-02 03:04:05.123456+00\n2\t\\N\tf\t2026-07-02 05:04:05+02\n"
_POSTGRES_NAMES = ("--columns", "id,name,is_open,at")
_R_ROWS = '"","id","price","open"\n"1",1,2.5,TRUE\n"2",2,NA,FALSE\n'
_ZSTD = pa.compress(_PLAIN.encode(), "zstd", asbytes=True)

CSVS = {
    "Excel, semicolons and a byte order mark": RealFile(
        "export.csv", text("\ufeff" + _SEMICOLONS), ("--decimal", ","), by_duckdb("delim=';', decimal_separator=','")
    ),
    "Excel, with a line that names the separator": RealFile(
        "sep.csv",
        text("sep=;\r\n" + _SEMICOLONS),
        ("--decimal", ",", "--skip-lines", "1"),
        by_duckdb("delim=';', decimal_separator=',', skip=1, header=true"),
    ),
    "Excel, decimal commas without a word": RealFile("commas.csv", text(_SEMICOLONS), error="--decimal ,"),
    "Excel, Unicode text": RealFile(
        "unicode.tsv", text("id\tname\r\n1\tŁódź\r\n", "utf-16"), (), by_pandas(sep="\t", encoding="utf-16")
    ),
    "Excel, Windows letters": RealFile(
        "ansi.csv",
        text("id;name\r\n1;Müller\r\n2;5 €\r\n", "cp1252"),
        ("--encoding", "windows-1252"),
        by_pandas(sep=";", encoding="cp1252"),
    ),
    "Excel, Windows letters without a word": RealFile("ansi.csv", text("id;name\r\n1;Müller\r\n", "cp1252"), error="--encoding"),
    "Latin-1": RealFile(
        "latin.csv", text("id,name\n1,Zoë\n", "latin-1"), ("--encoding", "latin-1"), by_pandas(encoding="latin-1")
    ),
    "old DOS": RealFile(
        "dos.csv", text("id;name\r\n1;Größe\r\n", "cp850"), ("--encoding", "cp850"), by_pandas(sep=";", encoding="cp850")
    ),
    "Windows lines and line ends in values": RealFile(
        "notes.csv", text('id,note\r\n1,"first\nsecond"\r\n2,"a, b"\r\n'), (), by_duckdb()
    ),
    "quotes in quotes": RealFile(
        "quotes.csv", text('id,said\n1,"He said ""no"""\n2,""""\n'), (), by_duckdb("quote='\"', escape='\"'")
    ),
    "quotes behind backslashes": RealFile(
        "escaped.csv", text('id,said\n1,"a \\"b\\" c"\n2,plain\n'), ("--escape", "\\"), by_duckdb("quote='\"', escape='\\'")
    ),
    "inches in a TSV, without quotes": RealFile(
        "nails.tsv", text('id\tname\n1\tnail 5"\n2\tnail 6\n'), ("--quote", ""), by_pandas(sep="\t", quoting=3)
    ),
    "mysqldump --tab": RealFile(
        "orders.txt",
        text("1\tAnna\t2026-01-02\n2\t\\N\t\\N\n"),
        ("--format", "csv", "--columns", "id,name,day", "--quote", "", "--null", "\\N"),
        sql(
            "select * from read_csv(FILE, delim='\t', header=false, nullstr='\\N', "
            "columns={'id': 'BIGINT', 'name': 'VARCHAR', 'day': 'DATE'})"
        ),
    ),
    "Postgres COPY with CSV and its own null": RealFile(
        "copy.csv", text("id,name,n\n1,Anna,\\N\n2,\\N,7\n"), ("--null", "\\N"), by_duckdb("nullstr='\\N'")
    ),
    "Postgres COPY as text": RealFile(
        "copy.tsv",
        text(_POSTGRES_TEXT),
        (*_POSTGRES_NAMES, "--null", "\\N", "--true", "t", "--false", "f"),
        sql(
            "select * from read_csv(FILE, delim='\t', header=false, nullstr='\\N', "
            "columns={'id': 'BIGINT', 'name': 'VARCHAR', 'is_open': 'BOOLEAN', 'at': 'TIMESTAMPTZ'})"
        ),
    ),
    "Snowflake's unload": RealFile(
        "data_0_0_0.csv.gz",
        text(gzip.compress(b'1,"Anna",\\N\n2,"B, C",2.50\n')),
        ("--columns", "id,name,net", "--null", "\\N"),
        by_duckdb("header=false, nullstr='\\N', names=['id', 'name', 'net']"),
    ),
    "BigQuery's export": RealFile(
        "bq-000000000000.csv",
        text("id,at,ok\n1,2026-01-02 03:04:05.123456 UTC,true\n2,2026-07-02 03:04:05 UTC,false\n"),
        (),
        sql("select id, replace(\"at\", ' UTC', '+00')::timestamptz as \"at\", ok from read_csv(FILE, types={'at': 'VARCHAR'})"),
    ),
    "Redshift's unload": RealFile(
        "0000_part_00",
        text("1|Anna|10.50\n2|B\\|C|7.00\n"),
        ("--format", "csv", "--delimiter", "|", "--columns", "id,name,net", "--escape", "\\"),
        by_pandas(sep="|", header=None, names=["id", "name", "net"], escapechar="\\"),
    ),
    "pandas with its index": RealFile("frame.csv", text(",id,n\n0,1,2.5\n1,2,3.5\n"), error="--columns"),
    "pandas with its index, named": RealFile(
        "frame.csv",
        text(",id,n\n0,1,2.5\n1,2,3.5\n"),
        ("--columns", "row,id,n", "--skip-lines", "1"),
        by_pandas(header=0, names=["row", "id", "n"]),
    ),
    "pandas, whole numbers with gaps": RealFile("gaps.csv", text("id,n\n1,1.0\n2,\n"), (), by_duckdb()),
    "polars, times without a zone": RealFile("frame.csv", text(_NO_ZONE), error="--timezone"),
    "polars, times of a zone": RealFile(
        "frame.csv",
        text(_NO_ZONE),
        ("--timezone", "Europe/Berlin"),
        by_duckdb("types={'at': 'TIMESTAMP'}", 'id, "at" at time zone \'Europe/Berlin\' as "at"'),
    ),
    "R's write.csv": RealFile("r.csv", text(_R_ROWS), error="--columns"),
    "R's write.csv, named": RealFile(
        "r.csv",
        text(_R_ROWS),
        ("--columns", "row,id,price,open", "--skip-lines", "1", "--null", "NA"),
        by_duckdb("header=true, nullstr='NA', names=['row', 'id', 'price', 'open']"),
    ),
    "R without row names": RealFile("r.csv", text('"id","n"\n1,NA\n2,5\n'), ("--null", "NA"), by_duckdb("nullstr='NA'")),
    "NA among numbers": RealFile("flights.csv", text("id,n\n1,NA\n2,5\n"), error="--null 'NA'"),
    "Python's csv module": RealFile("py.csv", text('id,name,ok\r\n1,"x, y",True\r\n2,,False\r\n'), (), by_duckdb()),
    "a delimiter behind each line": RealFile("trailing.csv", text("id,n,\n1,2,\n3,4,\n"), error="--columns"),
    "a delimiter behind each line, left out": RealFile(
        "trailing.csv",
        text("id,n,\n1,2,\n3,4,\n"),
        ("--columns", "id,n,rest", "--skip-lines", "1", "--select", "id,n"),
        by_pandas(usecols=["id", "n"]),
    ),
    "a delimiter behind the rows alone": RealFile("ragged.csv", text("id,n\n1,2,\n3,4,\n"), error="--columns"),
    "an empty file": RealFile("empty.csv", text(""), error="correct the file"),
    "a header alone": RealFile("header.csv", text("id,name\n"), (), by_duckdb("header=true")),
    "a header twice": RealFile("twice.csv", text("id,n,n\n1,2,3\n"), error="--columns"),
    "no header": RealFile("plain.csv", text("1,2.5\n2,3.5\n"), error="--columns"),
    "no header, named": RealFile(
        "plain.csv", text("1,2.5\n2,3.5\n"), ("--columns", "id,n"), by_duckdb("header=false, names=['id', 'n']")
    ),
    "names with spaces": RealFile(
        "names.csv", text("Order ID,Net €\n1,2.5\n"), error="--rename 'Order ID=order_id'", key="order_id"
    ),
    "names with spaces, renamed": RealFile(
        "names.csv",
        text("Order ID,Straße\n1,2.5\n"),
        ("--rename", "Order ID=id", "--rename", "Straße=street"),
        by_duckdb("", '"Order ID" as id, "Straße" as street'),
    ),
    "dates with dots": RealFile(
        "dots.csv", text("id,day\n1,31.12.2026\n2,01.02.2026\n"), (), by_duckdb("dateformat='%d.%m.%Y', types={'day': 'DATE'}")
    ),
    "dates of one of two kinds": RealFile("slashes.csv", text("id,day\n1,03/04/2026\n"), error="--date-format"),
    "American dates": RealFile(
        "slashes.csv",
        text("id,day\n1,03/04/2026\n"),
        ("--date-format", "%m/%d/%Y"),
        by_duckdb("dateformat='%m/%d/%Y', types={'day': 'DATE'}"),
    ),
    "American times": RealFile(
        "times.csv",
        text("id,at\n1,3/14/2026 9:26 PM\n"),
        ("--timestamp-format", "%m/%d/%Y %I:%M %p", "--timezone", "UTC"),
        sql(
            'select id::bigint as id, strptime("at", \'%-m/%-d/%Y %-I:%M %p\')::timestamptz as "at" from read_csv(FILE, all_varchar=true)'  # noqa: E501
        ),
    ),
    "thousands": RealFile(
        "thousands.csv", text('id,net\n1,"1,234.50"\n2,"12,345,678.25"\n'), ("--thousands", ","), by_pandas(thousands=",")
    ),
    "thousands without a word": RealFile(
        "thousands.csv", text('id,net\n1,"1,234.50"\n2,"12,345,678.25"\n'), error="--thousands ,"
    ),
    "money and percent": RealFile("money.csv", text('id,net,share\n1,"$1,234",12%\n2,$5,7.5%\n'), (), by_duckdb()),
    "codes with zeros in front": RealFile(
        "codes.csv", text("id,zip\n1,01234\n2,99999\n"), (), by_duckdb("types={'zip': 'VARCHAR'}")
    ),
    "more digits than an int64 has": RealFile(
        "digits.csv", text("id,n\n1,123456789012345678901\n2,5\n"), (), by_duckdb("types={'n': 'VARCHAR'}")
    ),
    "yes and no": RealFile(
        "words.csv",
        text("id,ok\n1,yes\n2,no\n"),
        ("--true", "yes", "--false", "no"),
        by_pandas(true_values=["yes"], false_values=["no"]),
    ),
    "gzip": RealFile("plain.csv.gz", text(gzip.compress(_PLAIN.encode())), (), by_duckdb()),
    "bzip2": RealFile("plain.csv.bz2", text(bz2.compress(_PLAIN.encode())), (), by_pandas()),
    "xz": RealFile("plain.csv.xz", text(lzma.compress(_PLAIN.encode())), (), by_pandas()),
    "Zstandard": RealFile("plain.csv.zst", text(_ZSTD), (), by_duckdb()),
    "lines of remarks first": RealFile(
        "remarks.csv", text("# made by a machine\n# on 2026-01-02\nid,n\n1,2\n"), ("--skip-lines", "2"), by_duckdb("skip=2")
    ),
    "spaces around numbers": RealFile("spaces.csv", text("id,n\n1,  2.5\n 2,3 \n"), (), by_pandas()),
    "small and endless numbers": RealFile(
        "science.csv", text("id,x\n1,1e-7\n2,-inf\n3,2.5E10\n"), (), by_duckdb("types={'x': 'DOUBLE'}")
    ),
    "times in UTC to the millisecond": RealFile(
        "iso.csv", text("id,at\n1,2026-01-02T03:04:05.678Z\n"), (), by_duckdb("types={'at': 'TIMESTAMPTZ'}")
    ),
    "lines that end like on an old Mac": RealFile("mac.csv", text("id,n\r1,2\r3,4\r"), (), by_duckdb()),
    "no end of the last line": RealFile("cut.csv", text("id,n\n1,2\n3,4"), (), by_duckdb()),
    "empty lines": RealFile("gaps.csv", text("id,n\n1,2\n\n3,4\n\n"), (), by_pandas()),
    "NUL bytes": RealFile("nul.csv", text(b"id,n\n1,\0\n"), error="--encoding"),
    "bars": RealFile("bars.txt", text("id|name\n1|a,b\n"), ("--format", "csv"), by_duckdb("delim='|'")),
    "a caret": RealFile("caret.csv", text("id^name\n1^a\n"), ("--delimiter", "^"), by_duckdb("delim='^'")),
    "spaces and brackets in a file's name": RealFile("Bericht (2) [neu].csv", text(_PLAIN), (), by_pandas()),
}
