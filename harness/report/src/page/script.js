(()=>{const d=document,box=d.getElementById('search'),found=d.getElementById('found');
const show=()=>{const at=location.hash.slice(1),to=at&&d.getElementById(at),fold=to&&to.querySelector('details');if(fold){fold.open=true;to.scrollIntoView()}};
addEventListener('hashchange',show);show();
if(!box)return;box.closest('form').hidden=false;let all;
const text=e=>((e.dataset.suite||'')+(e.querySelector('summary')||e).textContent).toLowerCase();
box.addEventListener('input',()=>{all=all||[...d.querySelectorAll('.item')].map(e=>[e,text(e)]);
const words=box.value.toLowerCase().split(/\s+/);let n=0;
for(const[e,t]of all){e.hidden=!words.every(w=>t.includes(w));n+=!e.hidden}
found.textContent=box.value?n+' found':''});
box.form.addEventListener('submit',e=>e.preventDefault())})()
