//! Finds the places of a file that can be changed, and in what ways.

use crate::values;
use quote::ToTokens;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Pat};

/// How the places differ in the way they are rewritten; ranges and positions are bytes of the file.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Another operator between two operands.
    Binary { operator: Range<usize> },
    /// `!` or `-` is left out.
    Unary { operand: usize },
    /// The function returns at its `{`.
    Body,
    /// The arm has a guard that always or never holds; `guard` is the one it has already.
    Arm { guard: Option<Range<usize>> },
    /// Another number.
    Number,
}

/// One way to change a place.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Of this number among all of the crate; 0 before they are counted.
    pub(crate) id: u32,
    /// What stands there instead.
    pub(crate) new: String,
    /// For people.
    pub(crate) name: String,
}

/// A place that can be changed.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) range: Range<usize>,
    pub(crate) kind: Kind,
    pub(crate) line: usize,
    pub(crate) function: String,
    pub(crate) changes: Vec<Change>,
}

/// The places of a file and the modules it has for tests only.
pub(crate) struct Found {
    pub(crate) sites: Vec<Site>,
    /// `mod name;` under `cfg(test)`, with the inline modules around it.
    pub(crate) for_tests: Vec<Vec<String>>,
}

/// All places of `source`; with `constants`, numbers too.
pub(crate) fn find(source: &str, constants: bool) -> syn::Result<Found> {
    let file = syn::parse_file(source)?;
    let found = Found { sites: vec![], for_tests: vec![] };
    let mut finder = Finder { found, source, constants, functions: vec![], inside: vec![] };
    finder.visit_file(&file);
    Ok(finder.found)
}

struct Finder<'a> {
    found: Found,
    source: &'a str,
    constants: bool,
    /// The functions around this place.
    functions: Vec<String>,
    /// The inline modules around this place.
    inside: Vec<String>,
}

/// Only there for tests: whatever depends on a condition that speaks of tests.
fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("test") || a.path().is_ident("cfg") && a.meta.to_token_stream().to_string().contains("test")
    })
}

/// Whether `let` is part of a condition: its operands cannot be moved into a block.
fn has_let(e: &Expr) -> bool {
    match e {
        Expr::Let(_) => true,
        Expr::Binary(b) => has_let(&b.left) || has_let(&b.right),
        _ => false,
    }
}

fn others(operator: &BinOp) -> &'static [&'static str] {
    use BinOp::*;
    match operator {
        Eq(_) => &["!="],
        Ne(_) => &["=="],
        And(_) => &["||"],
        Or(_) => &["&&"],
        Lt(_) => &["==", ">", "<="],
        Gt(_) => &["==", "<", ">="],
        Le(_) => &[">"],
        Ge(_) => &["<"],
        Add(_) => &["-", "*"],
        Sub(_) => &["+", "/"],
        Mul(_) => &["+", "/"],
        Div(_) => &["%", "*"],
        Rem(_) => &["/", "+"],
        Shl(_) => &[">>"],
        Shr(_) => &["<<"],
        BitAnd(_) => &["|", "^"],
        BitOr(_) => &["&", "^"],
        BitXor(_) => &["|", "&"],
        AddAssign(_) => &["-=", "*="],
        SubAssign(_) => &["+=", "/="],
        MulAssign(_) => &["+=", "/="],
        DivAssign(_) => &["%=", "*="],
        RemAssign(_) => &["/=", "+="],
        BitAndAssign(_) => &["|=", "^="],
        BitOrAssign(_) => &["&=", "^="],
        BitXorAssign(_) => &["|=", "&="],
        ShlAssign(_) => &[">>="],
        ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

impl Finder<'_> {
    /// Notes a place with its changes: what is new, and the same for people.
    fn add(&mut self, range: Range<usize>, at: proc_macro2::Span, kind: Kind, changes: Vec<(String, String)>) {
        let changes: Vec<Change> = changes.into_iter().map(|(new, name)| Change { id: 0, new, name }).collect();
        if !changes.is_empty() {
            let function = self.functions.last().cloned().unwrap_or_default();
            self.found.sites.push(Site { range, kind, line: at.start().line, function, changes });
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_some() {
            return; // The switch cannot be read while compiling.
        }
        self.functions.push(signature.ident.to_string());
        let body = block.span().byte_range();
        let text = self.source[body.start + 1..body.end - 1].trim();
        let mut news = values::of(&signature.output);
        // Not what it returns anyway, and not itself for ever.
        news.retain(|new| new != text && !(new == "()" && text.is_empty()));
        news.retain(|new| signature.ident != "default" || !new.contains("Default::default()"));
        let changes = news.into_iter().map(|new| (new.clone(), format!("return {new}"))).collect();
        self.add(body.start..body.start + 1, signature.ident.span(), Kind::Body, changes);
        self.visit_block(block);
        self.functions.pop();
    }
}

impl<'b> Visit<'b> for Finder<'_> {
    // What is fixed while compiling, and what is no code.
    fn visit_item_const(&mut self, _: &'b syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'b syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'b syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'b syn::ExprConst) {}
    fn visit_item_static(&mut self, _: &'b syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'b syn::ItemEnum) {}
    fn visit_item_struct(&mut self, _: &'b syn::ItemStruct) {}
    fn visit_type(&mut self, _: &'b syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'b syn::GenericArgument) {}
    fn visit_attribute(&mut self, _: &'b syn::Attribute) {}
    fn visit_pat(&mut self, _: &'b Pat) {}
    fn visit_expr_repeat(&mut self, e: &'b syn::ExprRepeat) {
        self.visit_expr(&e.expr);
    }

    fn visit_item_mod(&mut self, item: &'b syn::ItemMod) {
        self.inside.push(item.ident.to_string());
        if !for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        } else if item.content.is_none() {
            self.found.for_tests.push(self.inside.clone());
        }
        self.inside.pop();
    }

    fn visit_item_impl(&mut self, item: &'b syn::ItemImpl) {
        let name = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if !for_tests(&item.attrs) && name.is_none_or(|n| n.ident != "Debug") {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'b syn::ItemFn) {
        if !for_tests(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'b syn::ImplItemFn) {
        if !for_tests(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'b syn::TraitItemFn) {
        if let Some(block) = item.default.as_ref().filter(|_| !for_tests(&item.attrs)) {
            self.function(&item.sig, block);
        }
    }

    fn visit_local(&mut self, local: &'b syn::Local) {
        if !for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_expr_block(&mut self, e: &'b syn::ExprBlock) {
        if !for_tests(&e.attrs) {
            visit::visit_expr_block(self, e);
        }
    }

    fn visit_expr_binary(&mut self, e: &'b syn::ExprBinary) {
        if !has_let(&e.left) && !has_let(&e.right) {
            let operator = e.op.span().byte_range();
            let old = &self.source[operator.clone()];
            let changes = others(&e.op).iter().map(|new| (new.to_string(), format!("{old} became {new}"))).collect();
            self.add(e.span().byte_range(), e.op.span(), Kind::Binary { operator }, changes);
        }
        visit::visit_expr_binary(self, e);
    }

    fn visit_expr_unary(&mut self, e: &'b syn::ExprUnary) {
        let sign = match e.op {
            syn::UnOp::Not(_) => "!",
            syn::UnOp::Neg(_) => "-",
            _ => return visit::visit_expr_unary(self, e),
        };
        let operand = e.expr.span().byte_range().start;
        let change = (String::new(), format!("{sign} left out"));
        self.add(e.span().byte_range(), e.span(), Kind::Unary { operand }, vec![change]);
        visit::visit_expr_unary(self, e);
    }

    fn visit_expr_match(&mut self, e: &'b syn::ExprMatch) {
        let is_rest = |a: &syn::Arm| matches!(a.pat, Pat::Wild(_)) && a.guard.is_none();
        let has_rest = e.arms.iter().any(is_rest);
        for arm in e.arms.iter().filter(|a| !is_rest(a)) {
            let after = arm.pat.span().byte_range().end;
            match &arm.guard {
                Some((_, guard)) if !has_let(guard) => {
                    let range = guard.span().byte_range();
                    let changes =
                        ["true", "false"].map(|new| (new.to_string(), format!("guard became {new}"))).to_vec();
                    self.add(range.clone(), guard.span(), Kind::Arm { guard: Some(range) }, changes);
                }
                None if has_rest => {
                    let change = ("false".to_string(), "arm left out".to_string());
                    self.add(after..after, arm.pat.span(), Kind::Arm { guard: None }, vec![change]);
                }
                _ => {}
            }
        }
        visit::visit_expr_match(self, e);
    }

    fn visit_expr_lit(&mut self, e: &'b syn::ExprLit) {
        let (new, suffix) = match &e.lit {
            syn::Lit::Int(n) => (n.base10_parse::<u128>().ok().map(|v| (v + 1).to_string()), n.suffix()),
            syn::Lit::Float(n) => (n.base10_parse::<f64>().ok().map(|v| format!("{:?}", v + 1.0)), n.suffix()),
            _ => return,
        };
        if let Some(new) = new.filter(|_| self.constants) {
            let range = e.lit.span().byte_range();
            let name = format!("{} became {new}", &self.source[range.clone()]);
            self.add(range, e.lit.span(), Kind::Number, vec![(format!("{new}{suffix}"), name)]);
        }
    }
}
