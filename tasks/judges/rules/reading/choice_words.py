r"""Words around a label by which models choose or reject it, in the most frequent languages.

All patterns are for text that `choice_reading` has cleaned. Patterns for words before a label match at the
end of `before`; patterns for words after it match at the beginning of `after`.
"""

import regex

_FLAGS = regex.IGNORECASE

# Nouns that mean "the answer", with inflections that matter.
ANSWER = (
    r"(?:\b(?:answers?|exception|solution|conclusion|verdict|label|class|category|classification|sentiment|"
    r"prediction|antwort|lösung|réponse|respuesta|solución|resposta|solução|risposta|soluzione|antwoord|"
    r"odpowied[zź]|odpověď|răspuns(?:ul)?|svar(?:et)?|vastaus|válasz|cevap|yanıt|jawaban(?:nya)?|đáp án|"
    r"câu trả lời|ответ(?:ом)?|відповідь|отговор(?:ът)?|απάντηση)\b|الإجابة|الجواب|إجابة|جواب|پاسخ|תשובה|"
    r"उत्तर|जवाब|উত্তর|விடை|பதில்|సమాధానం|คำตอบ|ตอบ|答案|答え|解答|回答|正解|正答|정답|해답|답변?)"
)
_CHOSEN_ONE = (
    r"(?:\b(?:(?:the|my|our|only|one|single|most|more|final)\s+){0,4}+(?:correct|right|best|true|accurate|"
    r"valid|appropriate|suitable|likely|plausible|reasonable|remaining|closest|better|final|\w{3,12}+est|"
    r"richtige?[rsn]?|korrekte?[rsn]?|beste[rsn]?|bonne|correcte?|correct[ao]|mejor|melhor|cert[ao]|"
    r"corrett[ao]|giust[ao]|juiste|goede|poprawn[aey]|prawidłow[aey]|správn[áéý]|corect[aă]?|riktiga?|"
    r"rätta?|верн\w{2,4}|правильн\w{2,4}|правилен|benar|đúng|doğru)|सही|সঠিক|الصحيح[ةه]?|صحیح|נכון|ถูกต้อง)"
)
_OPTION = (
    r"(?:options?|choices?|letter|statement|alternative|item|answer|number|possibility|case|variant|"
    r"sentence|hypothesis|claim|option|antwort(?:möglichkeit)?|aussage|variante|buchstabe|réponse|"
    r"proposition|lettre|choix|opción|opcion|respuesta|alternativa|letra|inciso|literal|opção|opcao|"
    r"resposta|afirmação|opzione|risposta|lettera|affermazione|optie|antwoord|opcja|odpowiedź|możnost|"
    r"možnost|varianta|alternativ(?:et)?|vaihtoehto|seçene[kğ]i?|şık|pilihan|opsi|phương án|lựa chọn|"
    r"đáp án|вариант(?:ом)?|ответ|буква|пункт|утверждение|варіант|επιλογή|الخيار|خيار|الاختيار|گزینه|"
    r"אפשרות|विकल्प|বিকল্প|ตัวเลือก|ข้อ|选项|選項|选择|選擇|選択肢|보기|선택지|문항)"
)
_ARTICLE = (
    r"(?:the|an|der|die|das|la|le|les|el|los|las|lo|il|gli|os|as|de|het|den|det|ten|ta|to|az|(?-i:[aoηο])|"
    r"το|to be|as|simply|just|clearly|therefore|thus|indeed|probably|likely|most likely|definitely|"
    r"actually|only|rather|hence|then|daher|also|donc|entonces|portanto|quindi|dus|zatem|поэтому|так|claro|"
    r"por tanto|sans doute|always|again|still|now|with|for|overwhelmingly|strongly|"
    r"mostly|largely|generally|mainly|predominantly|primarily|very|highly|quite|somewhat|slightly|"
    r"extremely|decidedly|obviously|certainly)"
)
COPULA = (
    r"(?:\b(?:is|was|are|be|being|equals?|reads?|goes to|comes out (?:as|to be)|turns out to be|becomes|"
    r"remains|ist|wäre|lautet|heißt|est|serait|es|sería|seria|é|è|sarebbe|jest|je|este|är|er|on|blir|"
    r"adalah|ialah|là|это|является|будет|е|є|είναι|sería|fue|sein)\b|['’]s\b|هي|هو|است|היא|הוא|है|হল|হলো|"
    r"คือ|เป็น|是|为|為|应为|應為|应是|應是|选|選|は|が|[은는이가]\b|[—–→:=>-])"
)
# Between the noun and the label; a comma ends it.
_BETWEEN = r"[^.!?\n;,]{0,90}?"
_TAIL = rf"(?:\s|[\"'“”‘’「」『』《》【】\[\](<>|#-]|\b{_ARTICLE}\b|\b{_OPTION}(?:\b|(?=\s|$))|{_OPTION})*+"

STATED = regex.compile(
    rf"(?:{ANSWER}{_BETWEEN}{COPULA}{_TAIL}|{ANSWER}{_TAIL}|{_CHOSEN_ONE}{_BETWEEN}(?:{COPULA}){_TAIL})$",
    _FLAGS,
)
"""Beginning of a sentence up to the label, such as "The correct answer to this is option"."""

STATED_BY_TEXT = regex.compile(
    rf"(?:{ANSWER}{_BETWEEN}{COPULA}|\b(?:it|that|this)(?:['’]s| is| must be))\s[^.!?\n;,]{{1,60}}\s$", _FLAGS
)
"""Words up to a label in brackets after the option's own text, such as "The answer is Paris ("."""

CLAIMED = regex.compile(
    rf"\b(?:statement|claim|sentence|hypothesis|assertion|proposition)\s?{COPULA}{_TAIL}$", _FLAGS
)
"""Words up to an option that judges the statement in question, such as "The statement is"."""

CONCLUDING = regex.compile(
    r"\s*+(?:therefore|thus|so|hence|then|in conclusion|overall|finally|but|however|yet|actually)\b", _FLAGS
)
"""Beginning of a sentence that concludes from the previous one or retracts it."""

_FIRST_PERSON = (
    r"(?:\bI(?:['’](?:d|ll|m|ve))?|\bwe(?:['’](?:d|ll|re|ve))?|\blet(?:['’]s| me| us)|\bmy|\bour|\bone|"
    r"\byou|^|,|\b(?:to|so|and|then|thus|hence|therefore|must|should|would|will|can|ich|je|yo|eu|io|я))"
)
CHOOSING = regex.compile(
    rf"(?:\b(?:choose|chose|chosen|choosing|select(?:ed|ing)?|pick(?:ed|ing)?|prefer(?:red)?|(?:go|going|"
    rf"went|gone) (?:with|for)|settle(?:d)? (?:on|for)|opt(?:ed)? for|vote (?:for|is)|(?:left|leaves|"
    rf"leaving|leave)(?: us| me)?(?: with)?|leads?(?: us| me)? to|points?(?: us| me)? to|brings?(?: us|"
    rf" me)? to|corresponds? to|matches|match|makes?|making|made|rendering|gives|yields|supports?|"
    rf"favou?rs?|indicates?|suggests?|describes|meant|mean|(?:I|we)(?:['’]d| would| will| shall)? (?:say|"
    rf"answer|think|believe|guess|conclude|take|argue|mark)"
    rf"(?: that)?(?: it(?:['’]s| is))?|answer(?:ing)? with|answer|lean(?:ing)?(?: towards?| to)?|"
    rf"stick(?:ing)? with|stay(?:ing)? with|change(?: my answer)? to|changing(?: my answer)? to|"
    rf"correct(?:ed)?(?: my answer)? to|(?:it|that|this)(?:['’]s| is| must be| has to be| should be|"
    rf" would be| can only be|['’]d be| has got to be| will be)|(?:must|has to|have to|should|can only) be|"
    rf"(?:the )?(?:guess|pick|choice|vote|selection) (?:is|would be)|is (?:option|choice|letter|answer|"
    rf"statement)|(?:es|das|dies) (?:ist|muss)|c['’]est|ce serait|je (?:choisis|dirais|pense que c['’]est)|"
    rf"ich (?:wähle|nehme|entscheide mich für|würde sagen)|wähle|elijo|escojo|escolho|marque|scelgo|"
    rf"wybieram|выбираю|выберем|выбираем|pilih|chọn|memilih|kies)\b"
    rf"|选择|選擇|应选|應選|故选|故選|所以选|因此选|选|選|เลือก|اختر|أختار|चुनें|चुनता हूँ|chọn){_TAIL}$",
    _FLAGS,
)
"""Verbs of choosing before a label, such as "so I will go with"."""

THEREFORE = regex.compile(
    rf"(?:^|[,:])\s*(?:(?:so|thus|hence|therefore|then|ergo|finally|final|ok(?:ay)?|actually|wait|no|yes|"
    rf"well|hmm+|ah|oh|right|sorry|now|in conclusion|in short|to conclude|overall|final answer|i think|"
    rf"maybe|and|also|daher|deshalb|folglich|somit|also|donc|ainsi|por (?:lo )?tanto|así que|entonces|"
    rf"portanto|logo|quindi|dunque|dus|zatem|więc|tedy|deci|alltså|derfor|siis|tehát|yani|bu yüzden|jadi|"
    rf"vậy|do đó|итак|значит|следовательно|поэтому|таким образом|отже)\b|所以|因此|故|因而|よって|"
    rf"したがって|従って|つまり|그래서|따라서|그러므로|ดังนั้น|إذن|لذلك|لذا|इसलिए|अतः|\W)*+{_TAIL}$",
    _FLAGS,
)
"""A sentence or clause that has only such words before the label, as in "So option"."""

DOUBTFUL = regex.compile(
    r"\b(?:if|whether|suppose|supposing|assum(?:e|ing)|unless|why|could|might|may|some|many|people|others|"
    r"students|someone|mistake|trap|tempt(?:ed|ing)?|trick|wrongly|incorrectly|initially|at first|first|"
    r"originally|previously|earlier|thought|had|wenn|falls|ob|si|se|jika|nếu|если|ли|might be|not sure|"
    r"(?:case|argument)s? (?:can|to) (?:also )?be made)\b|"
    r"如果|若|假如|是否|もし|と思いましたが|만약|ถ้า|إذا|यदि|最初|一开始|起初|原以为|처음에",
    _FLAGS,
)
"""Words that mark a statement as only considered, or as an earlier opinion."""

NEGATED = regex.compile(
    r"\b(?:not|isn|wasn|aren|doesn|don|didn|can|couldn|won|wouldn|shouldn|mustn)['’]?t\b|\b(?:not|cannot|"
    r"never|neither|nor|nicht|kein\w{0,2}|weder|noch|sondern nicht|n['’]est pas|pas|ni|non|não|no (?:es|"
    r"está|puede|sería)|nem|nie|není|nu|inte|ikke|icke|niet|geen|ei|değil|bukan|tidak|không|не|ні|ни|δεν|"
    r"none of|instead of|rather than|anything but|unlike|except(?: for)?|besides|apart from|other than|"
    r"without|anstatt|statt|außer|au lieu d[eu]|sauf|en lugar de|salvo|invece di|вместо|кроме|"
    r"eliminat(?:e[sd]?|ing)|rul(?:e[sd]?|ing) out|exclud(?:e[sd]?|ing)|discard(?:s|ed|ing)?|reject(?:s|ed|"
    r"ing)?|dismiss(?:es|ed|ing)?|cross(?:es|ed|ing)? (?:out|off)|strik(?:e|ing) out|avoid(?:s|ing)?|"
    r"contradicts?|refutes?|disprove[sd]?|contrast(?:s)? with|wrong(?:ly)?|incorrect(?:ly)?|false|"
    r"descart(?:o|amos|ar|ando|a)|elimin(?:o|amos|ar|ons|er|iamo)|écart(?:e|ons|er)|exclu(?:ons|re|ir|"
    r"imos)|ausschließen|schließen|scarto|scartiamo|исключаем|исключить|отбрасываем|loại(?: trừ| bỏ)?|"
    r"eleriz|tukan)\b|排除|不是|并非|並非|不选|不選|不能选|不应选|而非|而不|不为|不|非|除了|除去|ليس(?:ت)?|"
    r"غير|لا|ไม่ใช่|ไม่|नहीं|לא|아닌|除外|消去",
    _FLAGS,
)
NEGATED_LABEL = regex.compile(
    rf"(?:{NEGATED.pattern})(?:\s|[\"'“”‘’「『(\[]|\b(?:be|is|was|it|it's|out|both|either|all|of|to|choose|"
    rf"pick|select|{_ARTICLE}|{COPULA})\b|{_OPTION}s?)*+$|"
    r"\b(?:and|as) so (?:is|are)\s*+\(?$|\b(?:wrong|incorrect|false|eliminated|excluded|"
    r"ruled out)(?: \w{1,10}+)?:\s*+\(?$",
    _FLAGS,
)
"""Words up to a rejected label, such as "not option" or "we can rule out both"."""

INSTEAD = regex.compile(
    rf"(?:\b(?:but|rather|instead|sondern|mais|sino|mas|ma|bensì|а|но|maar|ale|lecz|tetapi|melainkan|mà là|"
    rf"men|utan)\b|而是|ではなく|じゃなく|아니라|بل|बल्कि|แต่)(?:\s|,|\b(?:it|it's|is|it is|c'est|это|"
    rf"{COPULA})\b)*+{_TAIL}$",
    _FLAGS,
)
"""Words up to a label that replaces a rejected one, such as "not A but"."""

_BE = (
    r"(?:['’]s|is|was|are|seems?(?: to be)?|appears?(?: to be)?|looks?(?: to be)?|must be|has to be|"
    r"would be|should be|will be|might be|can be|could be|remains|stands out as|ist|wäre|est|serait|es|"
    r"está|é|è|sarebbe|jest|je|este|är|er|on|adalah|là|это|является|είναι)"
)
_ASIDE = (
    r"[)\]\"'”’»」』]{0,2}+(?:\s*+(?:\([^()\n]{0,80}+\)|\[[^\[\]\n]{0,80}+\]|,[^.,!?\n]{1,60}+,|"
    r"[—–-][^.—–\n]{1,60}+[—–-]))?+"
)
_ADVERB = (
    r"(?:(?:therefore|thus|clearly|definitely|indeed|actually|also|most|the|my|our|an|(?-i:[ao])|only|"
    r"single|one|probably|likely|hence|then|in fact|still|obviously|certainly|surely|by far|perhaps|la|le|"
    r"el|il|der|die|das|to|de|het|den|det|daher|donc|por tanto|portanto|alors|also|somit|really|so|overall|"
    r"logically|truly|factually|technically|undoubtedly|fully|completely|entirely|as|what|that is|"
    r"the one that is)\s++)*+"
)
_BEST = (
    r"(?:best|most (?:accurately|closely|clearly|directly))\s++(?:fits|describes|explains|matches|represents|"
    r"captures|answers|suits|summari[sz]es|reflects|completes|characteri[sz]es|illustrates|expresses|"
    r"supports|aligns|states|defines|identifies|resembles|corresponds|addresses|accounts)\b"
)
_RIGHT = (
    r"(?:correct|right|accurate|best|answer|solution|winner|it|one to (?:pick|choose|select|go with)|"
    r"choice|pick|selection|odd one out|(?:option|choice|answer|one|statement|letter)\s++(?:that\b|which\b|"
    r"left\b|remaining\b|to\b|here\b|I\b|we\b)|left(?: over| standing)?|remaining (?:option|choice|answer|"
    r"one)|(?!other|former|latter)\w{3,10}er\s++(?:option|choice|answer|candidate|fit)|"
    r"superior|better|fitting|(?:most|more)\s++\w{4,14}+|preferable|richtige?[rsn]?|korrekte?|die lösung|"
    r"bonne|"
    r"correcte?|exacte?|juste|correct[ao]s?|cierta|verdadera|cert[ao]|verdadeira|corrett[ao]|giust[ao]|"
    r"esatt[ao]|vera|juiste?|goede|poprawn[aey]|prawidłow[aey]|správn[áéý]|corect[aă]?|adevărat[aă]?|rätt|"
    r"riktig(?:t)?|oikein|oikea|helyes|benar|đúng|doğru|верн\w{1,3}|верен|правильн\w{2,4}|правилен|"
    r"правильно|верно|вірн\w{1,3}|правильн\w{1,3})\b"
)
RIGHT = regex.compile(
    rf"{_ASIDE}\s*+(?:(?:\b{_BE}|[—–:-])\s++{_ADVERB}{_RIGHT}|it is\b|it was\b|for sure\b|"
    rf"(?:better )?(?:fits|suits|matches) (?:best|better|the)"
    rf"|{_BEST}|wins\b|takes it\b|(?:верен|верна|верно|верный|правильн\w{{2,4}}|правилен)\b|"
    rf"(?:dir|dır|dur|dür|tir|tır)?\s*doğru(?:dur)?\b|benar\b|đúng\b|\s*[项項]?\s*(?:选项|選項)?\s*(?:才|最|"
    rf"就)?\s*[是为為]?\s*(?:正确|正確|对的|對的|对(?!比)|對|正解|最佳|答案|符合)|"
    rf":\s*(?:正确|正確|对|對)(?=\s*(?:[。，,.;；!！]|\Z))|"
    rf"\s*[がはも]?\s*(?:最も)?(?:正しい|正解|適切|正答|妥当)|(?:です|だ|である|になります|となります|"
    rf"と思います)|を選|\s*번?\s*(?:이|가|을|를|로|으로)?\s*(?:정답|맞|옳|올바|적절|선택|고르)|"
    rf"\s*번?\s*(?:입니다|이다|예요|이에요)|(?:wählen|nehmen|gewählt)\b|\s*(?:ถูก|صحيح|الصحيح|درست|सही|"
    rf"נכון))",
    _FLAGS,
)
"""Words after a chosen label, such as "is the correct answer"."""

HOLDS = regex.compile(
    rf"{_ASIDE}\s*+(?:{_BE}\s++{_ADVERB}(?:true|valid|plausible|consistent|appropriate|supported|"
    rf"reasonable|wahr|vraie?|verdader[ao])\b|does(?=\s*+(?:[.,!;]|\Z))|(?:alone |also |only )?(?:holds|"
    rf"works|fits|follows|applies|makes (?:the most )?sense|remains|matches|stands|satisfies|survives|"
    rf"stimmt|passt|trifft zu)\b|(?:成立|合理|为真|為真)|は(?:真|成り立))",
    _FLAGS,
)
"""Words after a label about a statement that holds, which need not be the answer."""

_BAD = (
    r"(?:wrong|incorrect|false|inaccurate|invalid|impossible|irrelevant|absurd|nonsense|out\b|too|"
    r"ruled out|eliminated|excluded|implausible|unlikely|tempting|distractors?|mistaken|untrue|unsupported|"
    r"off|(?:an? )?(?:common )?(?:mistake|trap|distractor|tempting)|the opposite|less|falsch|inkorrekt|"
    r"unzutreffend|faux|fausse|incorrecte?|inexacte?|fals[ao]|incorrect[ao]|errad[ao]|erróne[ao]|"
    r"scorrett[ao]|sbagliat[ao]|fout|onjuist|błędn[aey]|nieprawidłow[aey]|nesprávn[áéý]|greșit[aă]?|"
    r"incorect[aă]?|fel|feil|forkert|väärin|helytelen|yanlış|salah|sai|неверн\w{1,3}|неверен|"
    r"неправильн\w{2,4}|неправилен|хибн\w{1,3})\b"
)
WRONG = regex.compile(
    rf"{_ASIDE}\s*+(?:(?:[—–:?(|-]\s*+|,\s*+(?=which|that))(?:(?:this|it|that|"
    rf"which)\s++)?)?(?:{_BE}\s++{_ADVERB}(?:{_BAD}|not\b|"
    r"(?:no longer|never|the same|equivalent)\b)|(?:isn['’]t|wasn['’]t|aren['’]t|cannot|can['’]t|"
    r"doesn['’]t|don['’]t|does not|do not|never|nope)\b|['’]t\b|not\s++(?:correct|right|true|valid|"
    r"possible|accurate|supported|plausible|the|(?-i:an?)|what)\b|(?<=\w\s)not\b|(?:can be (?:excluded|"
    r"ruled|eliminated|discarded|rejected|dismissed)|contradicts?|fails?|confuses|ignores|forgets|misses|"
    r"describes the opposite|would (?:require|need|mean|imply)|seems (?:wrong|off|unlikely)|"
    r"say the same)\b|(?:ist|trifft|stimmt)\s++nicht|n['’]est\s++pas|no\s++(?:es|está)|não\s++(?:é|está)|"
    r"non\s++è|не\s|nie\s++jest|(?:неверн\w{1,3}|неверен|неправильн\w{2,4}|неправилен|хибн\w{1,3}|yanlış|"
    r"salah|sai)\b|není|nem\s)|^\s*(?:[项項]|选项|選項)?\s*(?:也|均|都|就)?\s*[是为為]?\s*(?:不|错|錯|误|"
    r"誤|有误|排除|无关|無關)|^\s*:\s*(?:不对|不對|不正确|不正確|错误?|錯誤?)(?=\s*(?:[。，,.;；!！]|\Z))|"
    r"^\s*(?:は|が|も|では)?\s*(?:誤り|間違|不適切|不正解|正しくな|違い|ではな|"
    r"でな|だと思いましたが)|^\s*번?\s*(?:은|는|이|가|도)?\s*(?:틀|오답|아니|잘못|옳지|맞지|부적절|"
    r"정답이 아)|^\s*(?:ผิด|ไม่|خاطئ|خطأ|غير|गलत|नहीं|שגוי|değil)",
    _FLAGS,
)
"""Words after a rejected label, such as "is wrong"."""

MAKING = regex.compile(r"\b(?:makes?|making|made|renders?|rendering)\s*+\(?$", _FLAGS)
"""Verbs before a label whose following words are no verdict on it, as in "makes A too strong"."""

CALLED_WRONG = regex.compile(
    rf"{_ASIDE}\s*+(?:[—–:?(|.,-]\s*+)?(?:(?:this|it|that|which)\s++(?:is\s++)?)?{_ADVERB}{_BAD}|"
    rf"\s*+[—–:|-]\s*+no\b",
    _FLAGS,
)
"""Words without a verb after a rejected label, as in "A) wrong". An option's own text can look like this."""

EXCEPTED = regex.compile(
    rf"\b(?:all|every\w{{0,5}}+|none|any\w{{0,5}}+)\b[^.!?\n]{{0,40}}?\b(?:but|except(?: for)?|besides|"
    rf"apart from){_TAIL}$",
    _FLAGS,
)
"""Words up to a label that is excluded from a statement about all others, such as "all but"."""

UNDERCUT = regex.compile(
    r"^[^.!?\n]{0,120}?\b(?:but|if|unless|however|yet|(?<!because )only (?:if|when|"
    r"for|in|under|before|after|until|while|during|within|with)|(?:correct|right|true|valid|answer|choice|option)"
    r"\s(?:before|until|till|prior to|under|only)|in (?:some|certain)|except|aber|"
    r"mais|pero|mas|ma|но)\b",
    _FLAGS,
)
"""Words in the same sentence which retract that something holds."""

SUPPOSED = regex.compile(
    rf"{_ASIDE}\s*+(?:would|could|might)(?: (?:also|only|then|well))* (?:be|have been)\b", _FLAGS
)
""""would be" and the like after a label: if the answer was given before, they concern another case."""

CONCEDED = regex.compile(rf"\b(?:even though|although|though|albeit){_TAIL}$", _FLAGS)
"""Words up to a label in a concession, such as "although"."""

DECLINED = regex.compile(
    r"\b(?:(?:can(?:no|['’])t|cannot|could not|couldn['’]t|do not|don['’]t|unable to|not able to) (?:answer|"
    r"determine|know|help|provide|give)|(?:cannot|can['’]t|unable to) (?:say|tell)"
    r"(?: for (?:sure|certain)|\s*+[.,!;]))(?! with \p{Lu}\b)"
    r"(?!.{0,400}?\b(?:but|guess|probably|likely|however|still|maybe|perhaps)\b)",
    _FLAGS | regex.DOTALL,
)
"""Statements by which an output says that it cannot answer, and does not guess."""

VERDICT_OF_ITEM = regex.compile(
    r"^\s*+(?:[).:|\]]\s*+)?(?:[^\n|.!?]{0,160}?[—–:|(.-]\s*+)?(?:this (?:option |choice |statement )?is |"
    r"it is |it['’]s )?"
    r"(?:the )?(?:(?P<right>correct|right|richtig|korrekt|correcte?|correct[ao]|corrett[ao]|верно|"
    r"правильно|正确|正確|正しい|맞|정답|yes|✓|✔|✅|☑)|(?P<holds>true|wahr|vraie?|verdader[ao]))(?!\w)",
    _FLAGS,
)
"""A list item that declares its option right, such as "C) London: correct"."""

CONJUNCTION = regex.compile(
    r"\s*+(?P<conjunction>\A[–—]\Z|(?:[,、]?\s*+(?:and|or|nor|und|oder|noch|et|ou|(?-i:[yeoiи])|ni|of|en|"
    r"lub|ani|og|och|eller|ja|tai|ve|veya|dan|atau|và|hoặc|или|ни|та|або|και|ή|through|bis|vs\.?|versus|"
    r"и/или|and/or|as well as)\b|[/&+、~]|和|与|與|及|或|跟|同|、?以及|と|や|または|과|와|및|또는|이나|"
    r"หรือ|และ|و|أو|או|और|या|এবং))?"
    r"(?P<comma>,)?\s*+(?:\(|\[)?(?:(?:option|choice|statement|answer|letter|variante?|choix|opción|"
    r"вариант)s?\s++|选项|選項)?"
    r"\s*+\Z",
    _FLAGS,
)
"""Text that may stand between two labels which are named together."""

# The article "A" is followed by a noun, the pronoun "I" by its verb. Before one of these words, a
# lone capital is neither.
CONTINUES = regex.compile(
    r"(?:\s*+(?:[^\p{Latin}\s]|\Z)|\s*+\n|\s++(?:[^\p{Ll}\s]|(?!\p{Latin})\S|(?:is|isn['’]t|"
    r"was(?!\s+(?:thinking|wrong|going))|are|were|seems?|appears?|looks|holds|fits|works|wins|makes|"
    r"matches|applies|follows|says|states|gives|has to|does|doesn['’]t|describes|represents|refers|"
    r"contains|provides|remains|stands|satisfies|contradicts|means|shows|fails|ignores|confuses|"
    r"would be (?:the|correct|right|best|wrong|incorrect)|must be (?:the|correct|right)|should be (?:the|"
    r"correct|right)|will be the|could be (?:the|correct|right)|can be (?:excluded|ruled|eliminated|"
    r"discarded|rejected|dismissed)|cannot be (?:right|correct|true|the)|it is|alone|instead|here|too|"
    r"better|and|or|but|nor|because|since|as|than|over|which|while|whereas|if|when|for|rather|due|although|"
    rf"{_BEST}|"
    r"explains|accounts|captures|suggests|implies|reflects|involves|requires|leads|aligns|corresponds|"
    r"supports|demonstrates|illustrates|includes|answers|addresses|completes|uses|"
    r"though|not|with|only|correctly|also (?:is|holds|fits)|would (?:require|mean|imply)|ist|war|wäre|"
    r"wählen|nehmen|oder|und|weil|denn|sondern|stimmt|passt|est|sont|et|ou|car|parce|es|está|porque|pues|y|"
    r"é|è|perché|poiché|jest|bo|je|este|är|er|dan|karena|adalah|là|vì|benar|đúng|salah|sai|doğru|yanlış|of|"
    r"to|through|vs|versus|bis)\b))",
)
