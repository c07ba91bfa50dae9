"""Read a date as people and models write it: ISO, numeric in either order, month names in several languages."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata

# Names without accents and dots, by month. English, Spanish, French, German, Turkish, then Italian, Portuguese, Dutch.
# No spelling may stand under two months: the module refuses to load otherwise.
_MONTHS = (
    "january jan enero ene janvier janv januar jan jaenner ocak oca gennaio gen janeiro januari",
    "february feb febrero fevrier fevr fev februar feber subat sub febbraio fevereiro februari",
    "march mar marzo mars maerz marz mrz mart marco maart mrt",
    "april apr abril abr avril avr nisan nis aprile",
    "may mayo mai mayis maggio mag maio mei",
    "june jun junio juin juni haziran haz giugno giu junho",
    "july jul julio juillet juil juli temmuz tem luglio lug julho",
    "august aug agosto ago aout agustos agu augustus",
    "september sep sept septiembre setiembre septembre eylul eyl settembre set setembro",
    "october oct octubre octobre oktober okt ekim eki ottobre ott outubro out",
    "november nov noviembre novembre kasim kas novembro",
    "december dec diciembre dic decembre dezember dez aralik ara dicembre dezembro",
)
_FILLER_WORDS = (
    "of the de del di do le la el den der dem am on monday tuesday wednesday thursday friday saturday "
    "sunday lunes martes miercoles jueves viernes sabado domingo lundi mardi mercredi jeudi vendredi "
    "samedi dimanche montag dienstag mittwoch donnerstag freitag samstag sonntag pazartesi sali carsamba "
    "persembe cuma cumartesi pazar"
)
_FILLERS = frozenset(_FILLER_WORDS.split())


def _month_table() -> dict[str, int]:
    table: dict[str, int] = {}
    for number, names in enumerate(_MONTHS, start=1):
        for name in names.split():
            if table.setdefault(name, number) != number:
                raise ValueError(f"month name {name!r} stands for two months")
    return table


_MONTH_NUMBER = _month_table()

_TIME = r"(?:[T ]+[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?\s*(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
_ISO = re.compile(rf"([0-9]{{4}})([-/.])([0-9]{{1,2}})\2([0-9]{{1,2}}){_TIME}", re.IGNORECASE)
_COMPACT = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_NUMERIC = re.compile(rf"([0-9]{{1,2}})(\s?[-/.]\s?|\s)([0-9]{{1,2}})\2([0-9]{{4}}|[0-9]{{2}}){_TIME}", re.IGNORECASE)
_VIETNAMESE = re.compile(r"(?:ngay )?([0-9]{1,2}) (?:thang|thg) ([0-9]{1,2})(?: nam)? ([0-9]{4})")
_CJK = re.compile(r"([0-9]{4})\s*年\s*([0-9]{1,2})\s*月\s*([0-9]{1,2})\s*日")
_WORD = re.compile(r"[a-z]+|[0-9]+")
_ORDINAL = re.compile(r"\b([0-9]{1,2})(?:st|nd|rd|th|er|re|e|º|ª)\b")
MAX_LENGTH = 80


def parse_date(text: str, *, day_first: bool) -> dt.date | None:
    """Return the one date that the text is, or null.

    `day_first` decides 03/04/2026 alone; 13/04/2026 and 04/13/2026 can be read in one way only and are read so. A
    year of two digits is 2000 to 2068 or 1969 to 1999, as POSIX has it. A time of day after the date is ignored. Text
    that holds more than a date (two dates, a sentence) is not a date.
    """
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        return None
    if match := _ISO.fullmatch(text):
        return _date(match[1], match[3], match[4])
    if match := _COMPACT.fullmatch(text) or _CJK.fullmatch(text):
        return _date(*match.groups())
    if match := _NUMERIC.fullmatch(text):
        return _numeric(int(match[1]), int(match[3]), match[4], day_first=day_first)
    return _in_words(text)


def _numeric(first: int, second: int, year: str, *, day_first: bool) -> dt.date | None:
    is_day_first = (day_first or first > 12) and not second > 12
    day, month = (first, second) if is_day_first else (second, first)
    return _date(year, month, day)


def _in_words(text: str) -> dt.date | None:
    plain = " ".join(re.sub(r"[.,]", " ", _without_accents(text)).split())
    if match := _VIETNAMESE.fullmatch(plain):
        return _date(match[3], match[2], match[1])
    plain = _ORDINAL.sub(r"\1", plain)
    if re.sub(r"[a-z0-9\s/-]", "", plain):
        return None
    months: list[int] = []
    days: list[str] = []
    years: list[str] = []
    for word in _WORD.findall(plain):
        if word.isdigit():
            (years if len(word) == 4 else days).append(word)
        elif word in _MONTH_NUMBER:
            months.append(_MONTH_NUMBER[word])
        elif word not in _FILLERS:
            return None
    if len(months) == 1 and len(days) == 2 and not years:
        years.append(days.pop())  # 3 April 26: the year comes last in every order that names the month
    if (len(months), len(days), len(years)) != (1, 1, 1):
        return None
    return _date(years[0], months[0], days[0])


def _without_accents(text: str) -> str:
    folded = unicodedata.normalize("NFD", text.casefold().replace("ı", "i").replace("đ", "d"))
    return "".join(char for char in folded if not unicodedata.combining(char))


def _date(year: str | int, month: str | int, day: str | int) -> dt.date | None:
    number = int(year)
    if isinstance(year, str) and len(year) == 2:
        number += 1900 if number >= 69 else 2000
    try:
        return dt.date(number, int(month), int(day))
    except ValueError:
        return None
