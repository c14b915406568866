import re
from hypothesis import given, settings, strategies as st
from tests.unit.render.test_properties import ANSWERS
from channels.render.stream import presentable
from channels.render.telegram import telegram_text
def sq(t): return re.sub(r"\s","",t)
@settings(max_examples=200,deadline=None)
@given(ANSWERS)
def test_x(doc):
    final=sq(telegram_text(doc).text)
    step=max(1,len(doc)//150)
    for n in range(0,len(doc)+1,step):
        shown=sq(telegram_text(presentable(doc[:n])).text)
        assert final.startswith(shown),(doc[:n][-80:],presentable(doc[:n])[-80:],shown[-40:],final[max(0,len(shown)-40):len(shown)+10])
    assert sq(telegram_text(presentable(doc)).text)==final
