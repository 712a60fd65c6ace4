/**
 * Makes zstd-codec comply with the page's policy, which does not allow code generated from text: where its JavaScript
 * creates functions with new Function(), the build substitutes equivalent closures. (Its WebAssembly would need
 * wasm-unsafe-eval.)
 */
import type { Plugin } from 'vite'

export function withoutEval(): Plugin {
  return {
    name: 'without-eval',
    transform(code, id) {
      if (!id.endsWith('/zstd-codec-binding.js')) return null
      return REPLACEMENTS.reduce((text, [evaluated, closure]) => {
        if (!evaluated.test(text)) throw new Error(`${id} is another one than this build knows`)
        return text.replace(evaluated, () => closure)
      }, code)
    },
  }
}

/** The code it evaluates at run time, and the equivalent closures. If one of them is not found, the build fails. */
const REPLACEMENTS: readonly (readonly [evaluated: RegExp, closure: string])[] = [
  [
    /return new Function\("body","return function ".*?\)\(body\)/s,
    'return function(){return body.apply(this,arguments)}',
  ],
  [
    /var name="dynCall_"\+signature.*?return new Function\("dynCall","rawFunction",body\)\(dynCall,rawFunction\)/s,
    'return function(){return dynCall.apply(null,[rawFunction].concat(Array.prototype.slice.call(arguments)))}',
  ],
  [
    /var returns=argTypes\[0\]\.name!=="void";var argsList="";.*?return invokerFunction\}/s,
    `return function(){
      if(arguments.length!==argCount-2)throwBindingError("function "+humanName+" called with a wrong number of arguments");
      var destructors=needsDestructorStack?[]:null,wired=[],i;
      if(isClassMethodFunc)wired.push(argTypes[1].toWireType(destructors,this));
      for(i=2;i<argCount;++i)wired.push(argTypes[i].toWireType(destructors,arguments[i-2]));
      var result=cppInvokerFunc.apply(null,[cppTargetFunc].concat(wired));
      if(needsDestructorStack)runDestructors(destructors);
      else for(i=isClassMethodFunc?1:2;i<argCount;++i)
        if(argTypes[i].destructorFunction!==null)argTypes[i].destructorFunction(wired[isClassMethodFunc?i-1:i-2]);
      if(argTypes[0].name!=="void")return argTypes[0].fromWireType(result)
    }}`,
  ],
  [
    /var signatureName=retType\.name\+.*?new_\(Function,params\)\.apply\(null,args\);/s,
    `var invokerFunction=function(handle,name,destructors,args){
      var read=[],offset=0,i;
      for(i=1;i<argCount;++i){read.push(types[i].readValueFromPointer(args+offset));offset+=types[i].argPackAdvance}
      var result=handle[name].apply(handle,read);
      for(i=1;i<argCount;++i)if(types[i].deleteObject)types[i].deleteObject(read[i-1]);
      if(!retType.isVoid)return retType.toWireType(destructors,result)
    };`,
  ],
  [
    /var argsList="";for\(var i=0;i<argCount;\+\+i\)\{argsList\+=\(i!==0\?", ":""\)\+"arg"\+i\}var functionBody="return function emval_allocator_.*?\(requireRegisteredType,Module,__emval_register\)/s,
    `return function(constructor,argTypes,args){
      var read=[],type,i;
      for(i=0;i<argCount;++i){
        type=requireRegisteredType(Module.HEAP32[(argTypes>>2)+i],"parameter "+i);
        read.push(type.readValueFromPointer(args));args+=type.argPackAdvance
      }
      return __emval_register(Reflect.construct(constructor,read))
    }`,
  ],
  // Without Node's Buffer it copies none of its initial memory: the loop counts a different variable than it tests.
  [/za=atob\(s\);for\(var Aa=0;/, 'za=atob(s);for(var Ba=0;'],
]
