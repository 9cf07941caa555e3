"""Words that carry grammar, per language: evidence that a sentence is in it, whatever names it holds.

Written for this package. Besides articles, prepositions, pronouns and auxiliaries there are a few words of
requests and answers about documents. A language without an entry is identified by its n-gram profile alone.
"""

from __future__ import annotations

_WORDS = {
    "en": """
        a about all also am an and any are as at be been before but by can cannot could did do does
        for from had has have he her here his how i if in into is it its like may me more most my no
        not now of on only or other our out please send she should so some than that the their them
        then there these they this those to under until up us was we were what when where which who
        whom whose why will with would yes you your
    """,
    "de": """
        aber alle als am an auch auf aus bei beim bis bitte da damit das dass dem den der des die
        dies diese diesem diesen dieser dieses doch du durch ein eine einem einen einer eines er es
        für gegen gibt haben hat hatte heute hier ich ihr ihre ihrem ihren ihrer im in ist ja kann
        kein keine können lautet man mehr mein mich mir mit morgen nach nein nicht noch nur ob oder
        ohne sehr sein seine seiner sich sie sind so soll um und uns unter vom von vor wann war
        waren warum was weil welche welcher welches wenn wer werden wie wieviel wir wird wo worden
        wurde wurden zu zum zur zwischen über
    """,
    "sw": """
        ambalo ambao ambaye ambayo ana au baada bado bila cha chake chini gani hadi hakuna hao hapa
        hapana hapo hata hayo hicho hii hiki hili hiyo hizi huo huu huyu iko ili ipi je juu kabla
        kama kati katika kila kuhusu kuna kutoka kuwa kwa la lake lakini langu leo lini mimi mwenye
        na nani naomba ndani ndio ndiyo ngapi ni niambie nina nini ninyi nipe nje pa pamoja pia sana
        sasa si sisi tafadhali tu vya wa wake wako wana wangu wao wapi wenye wewe ya yake yako yangu
        yao yenye yeye yuko yupi za zaidi zake zao
    """,
    "fr": """
        a au aussi aux avec ce ces cette comme dans de des donc du elle elles en est et il ils je la
        le les leur leurs ma mais mes mon ne nous ont ou où par pas plus pour que quel quelle qui
        quoi sa sans ses si son sont sur tous tout très un une vous à était été être
    """,
    "es": """
        a al como con cuando cuál de del desde donde e el en entre es esa ese esta estas este estos
        está están fue ha han hasta la las le lo los mi mis muy más no nos o para pero por que quien
        qué se ser si sin sobre son su sus también tu un una unas unos y
    """,
    "it": """
        a ai al alla anche che chi come con cosa da dal dei del della delle di e era gli ha hanno i
        il in la le lo loro ma nel nella non per più quale questa questo se si sono stato su sua suo
        un una uno è
    """,
    "pt": """
        a ao as com como da das de do dos e em essa esse esta este está foi mais mas na nas no nos
        não o os ou para pela pelo por qual que quem se sem ser seu seus sua são também tem um uma à
        é
    """,
    "nl": """
        aan als alstublieft bij dan dat de deze die dit door een en er heeft het hij in is je kan
        maar met moet naar niet nog of om ook op te u uit van voor waar wat welke wie wij wordt ze
        zij zijn
    """,
    "tr": """
        bir bu da daha de değil gibi ile için kadar mi mı ne olan olarak sonra var ve yok çok
    """,
    "id": """
        ada adalah akan atau bisa dan dari dengan di ini itu juga karena ke oleh pada sudah tidak
        untuk yang
    """,
    "pl": """
        ale co czy dla do i jak jest lub na nie o od oraz po przez się są to w z za że
    """,
    "sv": """
        att av de den det en ett från för har i inte kan med och om på som till var vi är
    """,
}

FUNCTION_WORDS: dict[str, frozenset[str]] = {language: frozenset(words.split()) for language, words in _WORDS.items()}
